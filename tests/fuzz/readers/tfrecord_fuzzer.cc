#include "glog/logging.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/io/record_io.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"
#include "lockstep/v1/example.pb.h"

namespace lockstep {
namespace {

// Returns a configuration that skips damage if `bits` & 2.
config::v1::InputConfig Configuration(uint8_t bits) {
  config::v1::InputConfig config;
  config.set_batch_size(1);
  if (bits & 2) config.set_on_damage(config::v1::InputConfig::SKIP_AND_COUNT);
  auto* const split = config.add_split();
  split->set_name("train");
  auto* const tfrecord = split->mutable_tfrecord();
  tfrecord->add_file("f");
  tfrecord->set_feature_key("x");
  tfrecord->set_label_key("y");
  tfrecord->add_feature_shape(3);
  return config;
}

bool ReadRecords(FileSystem* fs) {
  const auto reader = RecordReader::Open(fs, "f");
  CHECK(reader.ok());
  uint64_t at = 0;
  while (at < (*reader)->size()) {
    std::string payload;
    const auto position = (*reader)->ReadAt(at, &payload);
    if (!position.ok()) return false;
    CHECK_EQ(payload.size(), position->length);
    CHECK_GT(position->next, at);
    CHECK_EQ((*reader)->SkipAt(at)->next, position->next);
    at = position->next;
  }
  CHECK_EQ(at, (*reader)->size());
  return true;
}

// Parses an event file with corrected checksums.
bool RunEvents(absl::string_view input) {
  MemoryFileSystem fs;
  PutFile(&fs, "f", WithRecordChecksums(input));
  return ReadRecords(&fs);
}

// The input is a byte (1: correct the checksums, 2: skip damage), followed by the file.
bool RunFile(absl::string_view input) {
  FuzzInput in(input);
  const uint8_t bits = in.TakeByte();
  if (IsCompressed(in.rest())) return false;
  MemoryFileSystem fs;
  PutFile(&fs, "f", (bits & 1) ? WithRecordChecksums(in.rest()) : std::string(in.rest()));
  const bool whole = ReadRecords(&fs);
  return ReadWholeDataset(&fs, Kept<Configuration>(bits)) && whole;
}

// The input is the payloads, each preceded by its length.
bool RunExamples(absl::string_view input) {
  FuzzInput in(input);
  const uint8_t bits = (in.TakeByte() & 1) << 1;
  std::string file;
  while (!in.empty()) file += FrameRecord(in.TakeSized());
  MemoryFileSystem fs;
  PutFile(&fs, "f", file);
  return ReadWholeDataset(&fs, Kept<Configuration>(bits));
}

std::string Example(const std::string& x, const std::string& y) {
  v1::Example example;
  const std::string text =
      "features { feature { key: 'x' value { " + x + " } } feature { key: 'y' value { " + y + " } } }";
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &example)) << text;
  return example.SerializeAsString();
}

std::vector<std::vector<std::string>> ExampleFiles() {
  const std::string two = "int64_list { value: 2 }";
  return {{Example("float_list { value: [1, -2.5, 3e-3] }", two), Example("float_list { value: [0, 0, 0] }", two)},
          {Example("int64_list { value: [1, -2, 300] }", two)},
          {Example("bytes_list { value: 'abc' }", "float_list { value: [1, 2] }")}};
}

std::vector<std::string> FileSeeds() {
  std::vector<std::string> seeds;
  for (const auto& examples : ExampleFiles()) {
    seeds.push_back("\x01");
    for (const std::string& example : examples) seeds.back() += FrameRecord(example);
  }
  seeds.push_back(std::string(1, '\0') + seeds[0].substr(1));
  return seeds;
}

std::vector<std::string> ExampleSeeds() {
  std::vector<std::string> seeds;
  for (const auto& examples : ExampleFiles()) {
    seeds.emplace_back(1, '\0');
    for (const std::string& example : examples) seeds.back() += Sized(example);
  }
  seeds.push_back("\x01" + Sized("no example") + seeds[0].substr(1));
  return seeds;
}

std::vector<std::string> EventSeeds() { return {FileOfTree("tests/golden/events")}; }

// protobuf creates an object for every feature, and for every string in a list.
const FuzzTarget kFile({"tfrecord", kProtobufReserve + (4 << 20), 400, RunFile, FileSeeds});
const FuzzTarget kEvents({"events", 64 << 10, 6, RunEvents, EventSeeds});
const FuzzTarget kExamples({"example", kProtobufReserve + (4 << 20), 400, RunExamples, ExampleSeeds});

}  // namespace
}  // namespace lockstep

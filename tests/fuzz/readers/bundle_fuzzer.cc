#include <map>
#include <utility>

#include "glog/logging.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/checkpoint/bundle/bundle_writer.h"
#include "lockstep/common/checkpoint/bundle/index_table.h"
#include "lockstep/common/checkpoint/testing/decode_index_table.h"
#include "lockstep/common/io/crc32c.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {
namespace {

// If an entry refers to bytes of `data`, sets its checksum to theirs, because a fuzzer cannot guess a checksum.
std::string WithChecksum(absl::string_view value, absl::string_view data) {
  v1::BundleEntryProto entry;
  const bool parses = entry.ParseFromArray(value.data(), static_cast<int>(value.size()));
  if (!parses || entry.offset() < 0 || entry.size() < 0 || static_cast<uint64_t>(entry.offset()) > data.size()) {
    return std::string(value);
  }
  const auto offset = static_cast<size_t>(entry.offset()), size = static_cast<size_t>(entry.size());
  if (entry.dtype() == v1::DT_STRING || size > data.size() - offset) return std::string(value);
  entry.set_crc32c(MaskCrc32c(Crc32c(data.substr(offset, size))));
  return entry.SerializeAsString();
}

// Reads everything, as a restore and ./lockstep inspect do.
bool ReadAll(const BundleReader& reader) {
  const bool intact = reader.Verify().ok();
  for (const std::string& name : reader.names()) {
    const auto entry = reader.Describe(name);
    CHECK(entry.ok()) << entry.status();
    const auto tensor = reader.Read(name);
    if (tensor.ok()) CHECK_EQ(tensor->num_elements(), entry->shape.num_elements());
    if (intact) CHECK(tensor.ok() || absl::IsUnimplemented(tensor.status())) << tensor.status();
  }
  return intact;
}

// The input is the contents of every data file, followed by the keys and values of the index, each with its length.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const absl::string_view data = in.TakeSized();
  std::map<std::string, std::string> entries;
  while (!in.empty()) {
    const std::string key(in.TakeSized());
    const absl::string_view value = in.TakeSized();
    entries[key] = key.empty() ? std::string(value) : WithChecksum(value, data);
  }
  MemoryFileSystem fs;
  PutFile(&fs, "c.index", EncodeIndexTable(entries));
  for (const auto& [shard, shards] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    PutFile(&fs, DataPath("c", shard, shards), data);
  }
  const auto reader = BundleReader::Open(&fs, "c");
  if (reader.ok()) return ReadAll(**reader);
  CHECK(absl::IsDataLoss(reader.status()) || absl::IsUnimplemented(reader.status())) << reader.status();
  return false;
}

std::string InputOf(const std::string& index, const std::string& data) {
  std::string input = Sized(data);
  const auto entries = DecodeIndexTable(index);
  CHECK(entries.ok()) << entries.status();
  for (const auto& [key, value] : *entries) input += Sized(key) + Sized(value);
  return input;
}

std::vector<std::string> Seeds() {
  MemoryFileSystem fs;
  auto writer = BundleWriter::Create(&fs, "c").value();
  CHECK(writer->Add("w", v1::DT_FLOAT, Shape({2, 1}), "8 bytes!").ok());
  CHECK(writer->Add("global_step", v1::DT_INT64, Shape(), "12345678").ok());
  CHECK(writer->Finish().ok());
  return {InputOf(ReadFile(&fs, "c.index").value(), ReadFile(&fs, "c.data-00000-of-00001").value()),
          InputOf(FileOfTree("tests/golden/bundle/model.ckpt-7.index"),
                  FileOfTree("tests/golden/bundle/model.ckpt-7.data-00000-of-00001")),
          InputOf(FileOfTree("tests/golden/object_graph/ckpt-1.index"),
                  FileOfTree("tests/golden/object_graph/ckpt-1.data-00000-of-00001"))};
}

// When the index is parsed, each dimension and each slice in it becomes an object.
const FuzzTarget kTarget({"bundle", kProtobufReserve + (4 << 20), 1000, Run, Seeds, 2 << 10});

}  // namespace
}  // namespace lockstep

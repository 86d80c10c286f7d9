#include "glog/logging.h"
#include "lockstep/common/checkpoint/formats/npy.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// Returns a configuration with or without weights.
config::v1::InputConfig Configuration(uint8_t bits) {
  config::v1::InputConfig config;
  config.set_batch_size(1);
  auto* const split = config.add_split();
  split->set_name("train");
  split->mutable_npy()->set_features("x");
  split->mutable_npy()->set_labels("y");
  if (bits & 1) split->mutable_npy()->set_weights("w");
  return config;
}

// The input is a byte for the configuration, then the files of labels and weights, each preceded by its length, and
// then the file of features.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  const config::v1::InputConfig& config = Kept<Configuration>(in.TakeByte() & 1);
  MemoryFileSystem fs;
  PutFile(&fs, "y", in.TakeSized());
  PutFile(&fs, "w", in.TakeSized());
  PutFile(&fs, "x", in.rest());
  return ReadWholeDataset(&fs, config);
}

std::vector<std::string> Seeds() {
  const auto file = [](v1::DataType dtype, const Shape& shape, const std::string& content) {
    return EncodeNpyHeader(dtype, shape).value() + content;
  };
  const std::string classes = file(v1::DT_INT64, {2}, std::string(16, '\0'));
  const std::string weights = file(v1::DT_FLOAT, {2}, std::string(8, '\0'));
  const std::string targets = file(v1::DT_DOUBLE, {2, 1}, std::string(16, '\0'));
  const std::string unused = Sized("");
  return {std::string(1, '\0') + Sized(classes) + unused + file(v1::DT_FLOAT, {2, 1}, std::string(8, '\0')),
          std::string(1, '\1') + Sized(classes) + Sized(weights) + file(v1::DT_UINT8, {2, 3}, "abcdef"),
          std::string(1, '\0') + Sized(targets) + unused + file(v1::DT_HALF, {2}, "abcd"),
          std::string(1, '\0') + Sized(classes) + unused + file(v1::DT_INT16, {2, 2}, "abcdefgh")};
}

const FuzzTarget kTarget({"numpy", 1 << 20, 200, Run, Seeds});

}  // namespace
}  // namespace lockstep

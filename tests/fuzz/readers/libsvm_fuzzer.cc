#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// Returns a configuration from bits: skip damaged lines (1), targets (2) or binary labels (4) instead of classes,
// indices from 0 (8).
config::v1::InputConfig Configuration(uint8_t bits) {
  config::v1::InputConfig config;
  config.set_batch_size(1);
  if (bits & 1) config.set_on_damage(config::v1::InputConfig::SKIP_AND_COUNT);
  auto* const split = config.add_split();
  split->set_name("train");
  auto* const libsvm = split->mutable_libsvm();
  libsvm->add_file("f");
  libsvm->set_features(12);
  libsvm->set_regression((bits & 6) == 2);
  libsvm->set_binary_labels((bits & 6) == 4);
  libsvm->set_zero_based((bits & 8) != 0);
  return config;
}

bool Run(absl::string_view input) {
  FuzzInput in(input);
  const config::v1::InputConfig& config = Kept<Configuration>(in.TakeByte());
  if (IsCompressed(in.rest())) return false;
  MemoryFileSystem fs;
  PutFile(&fs, "f", in.rest());
  return ReadWholeDataset(&fs, config);
}

std::vector<std::string> Seeds() {
  return {std::string(1, '\0') + "3 1:0.5 12:-2e-3 # comment\n\n# all\n+1 2:1\r\n1.0",
          std::string(1, '\x02') + "-1.5e3 1:1 2:2\n0.25 11:7\n", std::string(1, '\x04') + "+1 3:4\n-1 5:6",
          std::string(1, '\x01') + "x\n1 2:1 1:2\n1 1:1 13:1\n2 1:1\n",
          std::string(1, '\x08') +
              "\xEF\xBB\xBF"
              "1 qid:7 0:1 11:2\n"};
}

const FuzzTarget kTarget({"libsvm", 4 << 20, 300, Run, Seeds, 512});

}  // namespace
}  // namespace lockstep

#include "glog/logging.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/config/text/override.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/tests/fuzz/fuzz_target.h"
#include "lockstep/tests/fuzz/input_files.h"

namespace lockstep {
namespace {

// Checks the format of an error.
void CheckMessage(const absl::Status& status) {
  CHECK(absl::IsInvalidArgument(status)) << status;
  CHECK(!status.message().empty());
}

// Writing an accepted configuration and reading it back, as a chief does with the one in its record, must not change
// it. Relative paths are relative to the file's directory.
void CheckRoundTrip(const config::v1::RunSpec& config) {
  MemoryFileSystem fs;
  const std::string text = PrintTextProto(config);
  PutFile(&fs, "/again", text);
  const auto again = LoadRunSpec(&fs, "/again", {});
  CHECK(again.ok()) << again.status() << "\n" << text;
  CHECK_EQ(PrintTextProto(*again), text);
  WeightsConfig(config);
}

// The input is the text with its length, followed by the overrides, each with its length.
bool Run(absl::string_view input) {
  FuzzInput in(input);
  MemoryFileSystem fs;
  PutFile(&fs, "/f", in.TakeSized());
  std::vector<std::string> overrides;
  while (!in.empty() && overrides.size() < 8) overrides.emplace_back(in.TakeSized());
  const auto config = LoadRunSpec(&fs, "/f", overrides);
  if (config.ok()) {
    CheckRoundTrip(*config);
    return true;
  }
  CheckMessage(config.status());
  return false;
}

bool RunOverride(absl::string_view input) {
  config::v1::RunSpec config;
  config.mutable_training()->set_steps(7);
  const std::string before = config.SerializeAsString();
  const absl::Status status = ApplyOverride(input, &config);
  if (status.ok()) return true;
  CheckMessage(status);
  CHECK(config.SerializeAsString() == before) << "a refused override changed " << PrintTextProto(config);
  return false;
}

std::vector<std::string> Seeds() {
  const std::string small = "optimizer { sgd {} learning_rate { initial: 0.1 } } training { steps: 10 }";
  return {Sized(FileOfTree("examples/cnn.textproto")), Sized(small),
          Sized(small) + Sized("training.steps=500") + Sized("optimizer={adam {} learning_rate { initial: 0.1 }}") +
              Sized("cluster.lease_seconds=3")};
}

std::vector<std::string> OverrideSeeds() {
  return {"training.steps=500",
          "optimizer.adam.beta1=0.8",
          "optimizer={adam {} learning_rate { initial: 0.1 }}",
          "model.layer[0].dense.units=64",
          "evaluation.metric[]=auc",
          "optimizer.learning_rate.piecewise.boundaries=10,30",
          "model.parameter[depth]=3",
          "input.on_damage=SKIP_AND_COUNT"};
}

// Every field in the text becomes an object, and so does its location, which is kept for messages. RE2 compiles
// expressions.
const FuzzTarget kText({"run_spec", 2 << 20, 2000, Run, Seeds, 3 << 10});
const FuzzTarget kOverride({"override", 256 << 10, 1000, RunOverride, OverrideSeeds, 256});

}  // namespace
}  // namespace lockstep

// Tests that the last line printed by `local` says why the run ended.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/worker/nn/graph/graph_model.h"
#include "lockstep/worker/nn/model.h"
#include "lockstep/worker/nn/model_registry.h"
#include "lockstep/worker/nn/testing/forwarding_model.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// A model that calls `interrupt` before it computes the third step.
class InterruptedModel : public ForwardingModel {
 public:
  InterruptedModel(std::unique_ptr<Model> model, void (*interrupt)(GradientSink*))
      : ForwardingModel(std::move(model)), interrupt_(interrupt) {}

  absl::Status ComputeGradients(VariableValues values, const Batch& batch, const SlotKey& key,
                                GradientSink* sink) override {
    if (key.step == 2) interrupt_(sink);
    return ForwardingModel::ComputeGradients(values, batch, key, sink);
  }

 private:
  void (*const interrupt_)(GradientSink*);
};

absl::StatusOr<std::unique_ptr<Model>> Interrupted(const ExampleSpec& examples, const ModelOptions& options,
                                                   void (*interrupt)(GradientSink*)) {
  config::v1::ModelConfig config;
  const absl::Status parsed =
      ParseTextProto("layer { name: 'logits' dense { units: 3 } } loss { softmax_cross_entropy {} }", "test", &config);
  if (!parsed.ok()) return parsed;
  auto model = GraphModel::Create(config, examples, options);
  if (!model.ok()) return model.status();
  return std::make_unique<InterruptedModel>(*std::move(model), interrupt);
}

REGISTER_MODEL("stops",
               [](auto&, const ExampleSpec& examples,
                  const ModelOptions& options) -> absl::StatusOr<std::unique_ptr<Model>> {
                 return Interrupted(examples, options, [](GradientSink* sink) { sink->RequestStop(); });
               });
REGISTER_MODEL("is_stopped",
               [](auto&, const ExampleSpec& examples,
                  const ModelOptions& options) -> absl::StatusOr<std::unique_ptr<Model>> {
                 return Interrupted(examples, options, [](GradientSink*) { kill(getpid(), SIGTERM); });
               });

class LastLineTest : public ::testing::Test {
 protected:
  LastLineTest() { EXPECT_EQ(FileSystem::Real()->CreateDirectory(directory_), absl::OkStatus()); }

  // Trains on 40 examples, 4 per step. Returns the last line of all output.
  std::string LastLine(const std::string& more, const std::vector<std::string>& flags = {}, bool has_logdir = true) {
    const std::string config = JoinPath(directory_, "c.textproto");
    EXPECT_EQ(WriteFileAtomically(FileSystem::Real(), config, absl::StrCat(kConfig, more)), absl::OkStatus());
    std::vector<std::string> words = {config, absl::StrCat("--logdir=", has_logdir ? JoinPath(directory_, "run") : "")};
    words.insert(words.end(), flags.begin(), flags.end());
    std::ostringstream output;
    exit_code_ = LocalCommand(FileSystem::Real(), words, output, output);
    const std::vector<std::string> lines = absl::StrSplit(output.str(), '\n', absl::SkipEmpty());
    return lines.empty() ? "" : lines.back();
  }

  static constexpr char kConfig[] = R"(
    input { split { name: "train" synthetic { examples: 40 shape: 4 classes: 3 } } batch_size: 4 }
    optimizer { sgd {} learning_rate { initial: 0.1 } }
    training { replicas_to_aggregate: 1 steps: 20 })";
  static constexpr char kLayers[] =
      "model { layer { name: 'logits' dense { units: 3 } } loss { softmax_cross_entropy {} } }";

  const std::string directory_ =
      absl::StrCat(getenv("TEST_TMPDIR"), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  int exit_code_ = -1;
};

TEST_F(LastLineTest, AllStepsAreDone) {
  EXPECT_THAT(LastLine(kLayers), MatchesRegex("finished at step 20 in .*: all steps are done"));
  EXPECT_EQ(exit_code_, kExitDone);
  EXPECT_THAT(LastLine(kLayers), StartsWith("finished at step 20 already; "));
}

TEST_F(LastLineTest, TheInputHasEnded) {
  for (const bool has_logdir : {true, false}) {
    EXPECT_THAT(LastLine(kLayers, {"--set=input.epochs=1"}, has_logdir),
                MatchesRegex("finished at step 10 in .*: the input has ended, input.epochs is 1"));
    EXPECT_EQ(exit_code_, kExitDone);
  }
}

TEST_F(LastLineTest, AReportAskedForTheEnd) {
  for (const bool has_logdir : {true, false}) {
    EXPECT_THAT(LastLine("model { registered: 'stops' }", {}, has_logdir),
                MatchesRegex("finished at step 3 in .*: the report of a slot asked for it"));
    EXPECT_EQ(exit_code_, kExitDone);
  }
}

TEST_F(LastLineTest, ALossIsNotFinite) {
  const std::string steep = "--set=optimizer.learning_rate.initial=1e38";
  EXPECT_THAT(LastLine(kLayers, {steep, "--set=training.end_on_non_finite=true"}),
              MatchesRegex("finished at step .* in .*: the .* of step .* is not finite \\(slot 0, computed by .*\\); "
                           "lockstep replay --logdir=.*/run --step=.* --slot=0 computes it again"));
  EXPECT_EQ(exit_code_, kExitDone);
  EXPECT_THAT(LastLine(kLayers, {steep}, /*has_logdir=*/false),
              MatchesRegex("lockstep local: the .* of step .* is not finite \\(slot 0, computed by .*\\)"));
  EXPECT_EQ(exit_code_, kExitFailed);
}

TEST_F(LastLineTest, ASignalStopsIt) {
  const std::vector<std::string> long_run = {"--steps=1000000000"};
  EXPECT_EQ(LastLine("model { registered: 'is_stopped' }", long_run),
            "stopped: SIGTERM was received; the same command resumes from the last checkpoint");
  EXPECT_EQ(exit_code_, kExitTerminated);
  EXPECT_EQ(LastLine("model { registered: 'is_stopped' }", long_run, /*has_logdir=*/false),
            "stopped: SIGTERM was received; nothing was kept without a --logdir");
  EXPECT_EQ(exit_code_, kExitTerminated);
}

}  // namespace
}  // namespace lockstep

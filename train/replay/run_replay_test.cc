// Tests that a replay repeats the changes that a program made between steps. tests/integration/replay_test.cc tests
// whole clusters.
#include "lockstep/train/replay/run_replay.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/config/settings_change.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/session/chief_session.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;

class RunReplayTest : public ::testing::Test {
 protected:
  // Trains a run that sets a variable at step 3, and at step 5 changes every setting that can be changed.
  void Train(const std::string& policy) {
    const TrainOp op = CreateTrainOp(absl::StrCat(R"(
      model { layer { name: "logits" dense { units: 3 } } loss { softmax_cross_entropy {} } }
      input { split { name: "train" synthetic { examples: 96 shape: 4 classes: 3 } } batch_size: 4 }
      training { steps: 9 )",
                                                  policy, R"( }
      checkpoint { every_steps: 3 keep: 0 }
      optimizer { momentum { momentum: 0.9 } learning_rate { initial: 0.05 } })"))
                           .value();
    SessionOptions options;
    options.op = op;
    options.logdir = "run";
    options.fs = &fs_;
    const auto session = ChiefSession::Open(options);
    ASSERT_TRUE(session.ok()) << session.status();
    RunTo(session->get(), op, 3);
    ASSERT_TRUE((*session)->Assign({NamedFloats("logits/bias", {3}, {1, 2, 3}).value()}).ok());
    RunTo(session->get(), op, 5);
    SettingsChange change;
    change.optimizer = op.spec.optimizer();
    change.optimizer->mutable_learning_rate()->set_initial(0.01f);
    change.optimizer->mutable_momentum()->set_momentum(0.5f);
    change.optimizer->mutable_clip()->set_by_global_norm(0.1f);
    change.batch_size = 7;
    ASSERT_TRUE((*session)->ChangeSettings(change).ok());
    RunTo(session->get(), op, 9);
    ASSERT_TRUE((*session)->Close().ok());
  }
  static void RunTo(ChiefSession* session, const TrainOp& op, int64_t step) {
    session->AllowThrough(step - 1);
    while (session->GlobalStep().value() < step) ASSERT_TRUE(session->Run(op).ok());
  }
  std::unique_ptr<RunReplay> Open() {
    RunReplay::Options options;
    options.fs = &fs_;
    options.logdir = "run";
    options.make_workload = [](const config::v1::RunSpec& config) { return LoadWorkload(config, WorkloadOptions()); };
    options.on_step = [this](const RunReplay::Step& step) {
      if (step.checkpoint) ++compared_;
      EXPECT_FALSE(step.difference.has_value()) << "step " << step.step << " differs in " << *step.difference;
    };
    return RunReplay::Open(options).value();
  }

  MemoryFileSystem fs_;
  int compared_ = 0;
};

TEST_F(RunReplayTest, MakesTheChangesOfADeterministicRun) {
  ASSERT_NO_FATAL_FAILURE(Train("replicas_to_aggregate: 2"));
  const absl::Status computed = Open()->ComputeSteps(0, 9);
  EXPECT_TRUE(computed.ok()) << computed;
  EXPECT_EQ(compared_, 4) << "3, 5 for its change, 6 and 9";
}

TEST_F(RunReplayTest, MakesTheChangesOfAnAsynchronousRun) {
  ASSERT_NO_FATAL_FAILURE(Train("async {} record_order: true"));
  const absl::Status computed = Open()->ComputeSteps(0, 9);
  EXPECT_TRUE(computed.ok()) << computed;
  EXPECT_EQ(compared_, 4);
  EXPECT_TRUE(Open()->ComputeSlot(9, 0).ok());
}

TEST_F(RunReplayTest, ValuesThatNoCheckpointHasAreAnError) {
  ASSERT_NO_FATAL_FAILURE(Train("replicas_to_aggregate: 2"));
  ASSERT_TRUE(RemoveCheckpoint(&fs_, "run/model.ckpt-3").ok());
  EXPECT_THAT(Open()->ComputeSteps(0, 9).message(),
              HasSubstr("variables were set at step 3, and no checkpoint of that step has their values"));
  EXPECT_TRUE(Open()->ComputeSteps(5, 9).ok());
}

}  // namespace
}  // namespace lockstep::train

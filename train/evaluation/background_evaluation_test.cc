#include "lockstep/train/evaluation/background_evaluation.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/evaluation/testing/sign_run.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BackgroundEvaluationTest : public ::testing::Test {
 protected:
  BackgroundEvaluationTest() {
    config_ = SignRunSpec();
    config_.mutable_evaluation()->set_every_steps(1);
  }

  SimulatedClock clock_;
  MemoryFileSystem fs_;
  config::v1::RunSpec config_;
};

TEST_F(BackgroundEvaluationTest, SaysALineForEachEvaluation) {
  RecordSignRun(&fs_, "/run", config_);
  BackgroundEvaluation evaluation(&fs_, &clock_, config_, "/run", absl::ZeroDuration());
  SaveSignCheckpoint(&fs_, "/run", 3, 1);
  evaluation.RunOnce();
  EXPECT_THAT(evaluation.TakeLines(), ElementsAre("step 3  test: 4 examples: accuracy 0.75"));
  EXPECT_THAT(evaluation.TakeLines(), IsEmpty());
}

TEST_F(BackgroundEvaluationTest, LooksInAThreadOfItsOwn) {
  RecordSignRun(&fs_, "/run", config_);
  SaveSignCheckpoint(&fs_, "/run", 3, 1);
  BackgroundEvaluation evaluation(&fs_, &clock_, config_, "/run", absl::Seconds(2));
  // The task waits for its next check only after it has finished this one.
  clock_.AwaitWaiters(1);
  EXPECT_THAT(evaluation.TakeLines(), ElementsAre("step 3  test: 4 examples: accuracy 0.75"));
}

TEST_F(BackgroundEvaluationTest, SaysOnceWhyItCannotEvaluate) {
  config_.mutable_evaluation()->clear_metric();
  config_.mutable_evaluation()->add_metric("rmse");
  RecordSignRun(&fs_, "/run", config_);
  SaveSignCheckpoint(&fs_, "/run", 3, 1);
  BackgroundEvaluation evaluation(&fs_, &clock_, config_, "/run", absl::ZeroDuration());
  evaluation.RunOnce();
  evaluation.RunOnce();
  EXPECT_THAT(evaluation.TakeLines(), ElementsAre(HasSubstr("not evaluated: ")));
}

TEST_F(BackgroundEvaluationTest, NamesADamagedCheckpointAndGoesOn) {
  RecordSignRun(&fs_, "/run", config_);
  SaveSignCheckpoint(&fs_, "/run", 3, 1);
  fs_.FlipBits("/run/model.ckpt-3.data-00000-of-00001", 5, 1);
  BackgroundEvaluation evaluation(&fs_, &clock_, config_, "/run", absl::ZeroDuration());
  evaluation.RunOnce();
  evaluation.RunOnce();
  SaveSignCheckpoint(&fs_, "/run", 5, 1);
  evaluation.RunOnce();
  EXPECT_THAT(evaluation.TakeLines(),
              ElementsAre(HasSubstr("not evaluated: "), "step 5  test: 4 examples: accuracy 0.75"));
}

// A file system that cancels the evaluation when the checkpoint's data file is opened.
class CancellingFileSystem : public MemoryFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    if (evaluation != nullptr && path.find(".data-") != std::string::npos) evaluation->Cancel();
    return MemoryFileSystem::NewRandomAccessFile(path);
  }

  BackgroundEvaluation* evaluation = nullptr;
};

TEST_F(BackgroundEvaluationTest, CancelEndsARunningEvaluation) {
  CancellingFileSystem fs;
  RecordSignRun(&fs, "/run", config_);
  SaveSignCheckpoint(&fs, "/run", 3, 1);
  BackgroundEvaluation evaluation(&fs, &clock_, config_, "/run", absl::ZeroDuration());
  fs.evaluation = &evaluation;
  evaluation.RunOnce();
  fs.evaluation = nullptr;
  SaveSignCheckpoint(&fs, "/run", 5, 1);
  evaluation.RunOnce();
  EXPECT_THAT(evaluation.TakeLines(), IsEmpty());
}

TEST_F(BackgroundEvaluationTest, IsIdleUnlessTheConfigurationAsksForIt) {
  config_.mutable_evaluation()->set_every_steps(0);
  RecordSignRun(&fs_, "/run", config_);
  SaveSignCheckpoint(&fs_, "/run", 3, 1);
  BackgroundEvaluation evaluation(&fs_, &clock_, config_, "/run", absl::ZeroDuration());
  evaluation.RunOnce();
  EXPECT_THAT(evaluation.TakeLines(), IsEmpty());
}

}  // namespace
}  // namespace lockstep

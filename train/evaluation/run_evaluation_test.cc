#include "lockstep/train/evaluation/run_evaluation.h"

#include <functional>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/io/testing/memory_file_system.h"
#include "lockstep/train/evaluation/testing/sign_run.h"
#include "lockstep/train/testing/jumping_clock.h"

namespace lockstep::train {
namespace {

// A clock that runs one event in each pause.
class EventfulClock : public JumpingClock {
 public:
  bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) override {
    if (next_ < events_.size()) events_[next_++]();
    return JumpingClock::WaitUntil(cv, mutex, deadline);
  }
  // Adds an event for the next pause.
  void Add(std::function<void()> event) { events_.push_back(std::move(event)); }
  size_t pauses() const { return next_; }

 private:
  std::vector<std::function<void()>> events_;
  size_t next_ = 0;
};

class RunEvaluationTest : public ::testing::Test {
 protected:
  RunEvaluationTest() {
    options_.logdir = "/run";
    options_.clock = &clock_;
    options_.fs = &fs_;
  }
  void Finish() {
    v1::RunRecord record = **ReadRunRecord(&fs_, "/run");
    record.set_finished(true);
    ASSERT_TRUE(WriteRunRecord(&fs_, "/run", record).ok());
  }
  bool HasEvents() {
    const auto names = fs_.ListDirectory("/run/eval");
    return names.ok() && names->size() == 1 && absl::StrContains(names->front(), "tfevents");
  }

  MemoryFileSystem fs_;
  EventfulClock clock_;
  RunEvaluationOptions options_;
};

TEST_F(RunEvaluationTest, EvaluatesUntilTheLastStep) {
  clock_.Add([this] { RecordSignRun(&fs_, "/run"); });
  clock_.Add([this] { SaveSignCheckpoint(&fs_, "/run", 4, 1); });
  clock_.Add([this] { SaveSignCheckpoint(&fs_, "/run", 10, 1); });
  EXPECT_TRUE(EvaluateRun(options_).ok());
  EXPECT_EQ(clock_.pauses(), 3u);
  EXPECT_TRUE(HasEvents());
}

TEST_F(RunEvaluationTest, EndsWithARunThatWasEndedEarly) {
  clock_.Add([this] {
    RecordSignRun(&fs_, "/run");
    SaveSignCheckpoint(&fs_, "/run", 4, 1);
  });
  clock_.Add([this] { Finish(); });
  EXPECT_TRUE(EvaluateRun(options_).ok());
  EXPECT_EQ(clock_.pauses(), 2u);
  EXPECT_TRUE(HasEvents());
}

TEST_F(RunEvaluationTest, ADamagedCheckpointIsSkipped) {
  RecordSignRun(&fs_, "/run");
  SaveSignCheckpoint(&fs_, "/run", 4, 1);
  ASSERT_TRUE(WriteFileAtomically(&fs_, "/run/model.ckpt-4.index", "damaged").ok());
  clock_.Add([this] { SaveSignCheckpoint(&fs_, "/run", 10, 1); });
  EXPECT_TRUE(EvaluateRun(options_).ok());
  EXPECT_EQ(clock_.pauses(), 1u);
}

TEST_F(RunEvaluationTest, AStopEndsIt) {
  StopSignal stop;
  options_.stop = &stop;
  stop.Request();
  EXPECT_TRUE(absl::IsCancelled(EvaluateRun(options_)));
}

}  // namespace
}  // namespace lockstep::train

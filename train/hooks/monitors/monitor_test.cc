#include "lockstep/train/hooks/monitors/monitor.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/train/testing/fake_session.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BareMonitor : public Monitor {
 public:
  std::string name() const override { return "bare"; }
};

class RecordingEveryN : public EveryN {
 public:
  using EveryN::EveryN;
  std::string name() const override { return "recording"; }

  std::vector<int64_t> begun, ended, post;

 protected:
  absl::StatusOr<std::vector<std::string>> EveryNStepBegin(int64_t step) override {
    begun.push_back(step);
    return std::vector<std::string>();
  }
  absl::StatusOr<bool> EveryNStepEnd(int64_t step, const RunValues&) override {
    ended.push_back(step);
    return false;
  }
  absl::Status EveryNPostStep(int64_t step, Session&) override {
    post.push_back(step);
    return absl::OkStatus();
  }
};

class MonitorTest : public ::testing::Test {
 protected:
  void Step(Monitor* monitor, int64_t step) {
    ASSERT_TRUE(monitor->StepBegin(step).ok());
    ASSERT_TRUE(monitor->StepEnd(step, RunValues()).ok());
    ASSERT_TRUE(monitor->PostStep(step, session_).ok());
  }
  void Steps(Monitor* monitor, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) Step(monitor, step);
  }

  FakeSession session_;
};

// MON-01.
TEST_F(MonitorTest, EveryEighthStepTheFirstTwoAndTheLast) {
  RecordingEveryN monitor(8, 2);
  ASSERT_TRUE(monitor.Begin(29).ok());
  Steps(&monitor, 0, 29);
  ASSERT_TRUE(monitor.End(session_).ok());
  const auto steps = ElementsAre(0, 1, 2, 10, 18, 26, 29);
  EXPECT_THAT(monitor.begun, steps);
  EXPECT_THAT(monitor.ended, steps);
  EXPECT_THAT(monitor.post, steps);
}

// MON-02.
TEST_F(MonitorTest, WithoutAKnownEndTheLastStepIsPostedAtTheEnd) {
  RecordingEveryN monitor(8, 2);
  ASSERT_TRUE(monitor.Begin(absl::nullopt).ok());
  Steps(&monitor, 0, 29);
  ASSERT_TRUE(monitor.End(session_).ok());
  EXPECT_THAT(monitor.begun, ElementsAre(0, 1, 2, 10, 18, 26));
  EXPECT_THAT(monitor.ended, ElementsAre(0, 1, 2, 10, 18, 26));
  EXPECT_THAT(monitor.post, ElementsAre(0, 1, 2, 10, 18, 26, 29));
}

// MON-04.
TEST_F(MonitorTest, EverySecondStep) {
  RecordingEveryN monitor(2, -1);
  ASSERT_TRUE(monitor.Begin(29).ok());
  Steps(&monitor, 0, 29);
  EXPECT_THAT(monitor.begun, ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 29));
}

TEST_F(MonitorTest, EveryZerothStepIsEveryStep) {
  RecordingEveryN monitor(0, 0);
  ASSERT_TRUE(monitor.Begin(absl::nullopt).ok());
  Steps(&monitor, 1, 4);
  EXPECT_THAT(monitor.begun, ElementsAre(1, 2, 3, 4));
}

// MON-06.
TEST_F(MonitorTest, AStepThatWasInterruptedBeginsAgain) {
  RecordingEveryN monitor(8, -1);
  ASSERT_TRUE(monitor.Begin(absl::nullopt).ok());
  ASSERT_TRUE(monitor.StepBegin(8).ok());
  Step(&monitor, 8);
  EXPECT_THAT(monitor.begun, ElementsAre(8, 8));
  EXPECT_THAT(monitor.ended, ElementsAre(8));
  // A step that has ended does not begin again.
  ASSERT_TRUE(monitor.StepBegin(8).ok());
  EXPECT_THAT(monitor.begun, ElementsAre(8, 8));
}

// MON-08.
TEST_F(MonitorTest, TheLastStepIsPostedAtTheEnd) {
  RecordingEveryN monitor(8, -1);
  ASSERT_TRUE(monitor.Begin(absl::nullopt).ok());
  for (const int64_t step : {8, 16, 19}) Step(&monitor, step);
  ASSERT_TRUE(monitor.End(session_).ok());
  EXPECT_THAT(monitor.begun, ElementsAre(8, 16));
  EXPECT_THAT(monitor.post, ElementsAre(8, 16, 19));
}

TEST_F(MonitorTest, WithoutAStepNothingIsPosted) {
  RecordingEveryN monitor;
  ASSERT_TRUE(monitor.Begin(absl::nullopt).ok());
  ASSERT_TRUE(monitor.End(session_).ok());
  EXPECT_THAT(monitor.post, IsEmpty());
}

TEST_F(MonitorTest, GatesWhereItWillBeActive) {
  RecordingEveryN monitor(8, 2);
  ASSERT_TRUE(monitor.Begin(absl::nullopt).ok());
  Steps(&monitor, 1, 4);
  EXPECT_FALSE(monitor.GatesAt(9));
  EXPECT_TRUE(monitor.GatesAt(10));
}

TEST_F(MonitorTest, ARestartContinuesTheSequence) {
  RecordingEveryN first(8, 2), second(8, 2);
  ASSERT_TRUE(first.Begin(absl::nullopt).ok());
  Steps(&first, 0, 20);
  ASSERT_TRUE(second.Begin(absl::nullopt).ok());
  ASSERT_TRUE(second.SetState(first.State()).ok());
  Steps(&second, 21, 29);
  EXPECT_THAT(second.begun, ElementsAre(26));
}

// MON-09.
TEST_F(MonitorTest, BeginAndEndAlternate) {
  BareMonitor monitor;
  EXPECT_EQ(monitor.End(session_), absl::InvalidArgumentError("End was called without Begin"));
  ASSERT_TRUE(monitor.Begin(absl::nullopt).ok());
  EXPECT_EQ(monitor.Begin(absl::nullopt), absl::InvalidArgumentError("Begin was called twice without End"));
  ASSERT_TRUE(monitor.End(session_).ok());
  EXPECT_TRUE(monitor.Begin(absl::nullopt).ok());
}

// MON-10.
TEST_F(MonitorTest, StepsAreInRangeAndEndAsTheyBegan) {
  BareMonitor monitor;
  ASSERT_TRUE(monitor.Begin(5).ok());
  EXPECT_EQ(monitor.StepBegin(-1).status(), absl::InvalidArgumentError("step -1 where 0 to 5 is expected"));
  EXPECT_EQ(monitor.StepBegin(6).status(), absl::InvalidArgumentError("step 6 where 0 to 5 is expected"));
  EXPECT_EQ(monitor.StepEnd(3, RunValues()).status(), absl::InvalidArgumentError("the end of step 3 in step none"));
  ASSERT_TRUE(monitor.StepBegin(3).ok());
  EXPECT_FALSE(monitor.StepEnd(4, RunValues()).ok());
  EXPECT_TRUE(monitor.StepEnd(3, RunValues()).ok());
}

TEST_F(MonitorTest, EpochsAlternateToo) {
  BareMonitor monitor;
  EXPECT_FALSE(monitor.EpochBegin(-1).ok());
  ASSERT_TRUE(monitor.EpochBegin(0).ok());
  EXPECT_THAT(monitor.EpochBegin(1).message(), HasSubstr("twice"));
  EXPECT_EQ(monitor.EpochEnd(1), absl::InvalidArgumentError("the end of epoch 1 in epoch 0"));
  EXPECT_TRUE(monitor.EpochEnd(0).ok());
}

}  // namespace
}  // namespace lockstep::train

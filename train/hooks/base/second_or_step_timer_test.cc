#include "lockstep/train/hooks/base/second_or_step_timer.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/base/testing/simulated_clock.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SecondOrStepTimerTest : public ::testing::Test {
 protected:
  SecondOrStepTimer Make(const Period& period) { return *SecondOrStepTimer::Create(period, &clock_); }
  SimulatedClock clock_;
};

TEST_F(SecondOrStepTimerTest, APeriodOfTimeTriggersOncePerStep) {
  SecondOrStepTimer timer = Make(Period::Time(absl::Seconds(1)));
  EXPECT_TRUE(timer.ShouldTrigger(1));
  EXPECT_FALSE(timer.Update(1).has_value());
  EXPECT_FALSE(timer.ShouldTrigger(1));
  EXPECT_FALSE(timer.ShouldTrigger(2));
  clock_.Advance(absl::Seconds(1));
  EXPECT_FALSE(timer.ShouldTrigger(1));
  EXPECT_TRUE(timer.ShouldTrigger(2));
}

TEST_F(SecondOrStepTimerTest, UpdateSaysWhatHasPassed) {
  SecondOrStepTimer timer = Make(Period::Steps(3));
  EXPECT_FALSE(timer.Update(5).has_value());
  clock_.Advance(absl::Seconds(7));
  const auto elapsed = timer.Update(9);
  ASSERT_TRUE(elapsed.has_value());
  EXPECT_EQ(elapsed->time, absl::Seconds(7));
  EXPECT_EQ(elapsed->steps, 4);
  EXPECT_EQ(timer.last_triggered_step(), 9);
  timer.Reset();
  EXPECT_FALSE(timer.Update(10).has_value());
}

TEST_F(SecondOrStepTimerTest, MayTriggerAtForesaysThePeriodOfSteps) {
  SecondOrStepTimer timer = Make(Period::Steps(3));
  EXPECT_TRUE(timer.MayTriggerAt(17));
  timer.Update(1);
  std::vector<int64_t> foreseen, triggered;
  for (int64_t step = 1; step <= 12; ++step) {
    if (timer.MayTriggerAt(step)) foreseen.push_back(step);
  }
  for (int64_t step = 1; step <= 12; ++step) {
    if (!timer.ShouldTrigger(step)) continue;
    triggered.push_back(step);
    timer.Update(step);
  }
  EXPECT_THAT(foreseen, ElementsAre(4, 7, 10));
  EXPECT_EQ(triggered, foreseen);
}

TEST_F(SecondOrStepTimerTest, WithAPeriodOfTimeItMayTriggerAtAnyOtherStep) {
  SecondOrStepTimer timer = Make(Period::Time(absl::Seconds(1)));
  timer.Update(1);
  EXPECT_FALSE(timer.MayTriggerAt(1));
  EXPECT_TRUE(timer.MayTriggerAt(2));
}

TEST_F(SecondOrStepTimerTest, ExactlyOneOfStepsAndTimeIsExpected) {
  const auto message = [&](const Period& period) {
    const absl::Status status = SecondOrStepTimer::Create(period, &clock_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message(Period()), HasSubstr("neither steps and time where exactly one"));
  EXPECT_THAT(message(Period{1, absl::Seconds(1)}), HasSubstr("both steps and time where exactly one"));
  EXPECT_THAT(message(Period::Steps(0)), HasSubstr("0 steps where at least 1"));
  EXPECT_THAT(message(Period::Time(absl::ZeroDuration())), HasSubstr("0 long where more than 0"));
}

}  // namespace
}  // namespace lockstep::train

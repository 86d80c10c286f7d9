#include "common/base/clock.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(RealClockTest, TellsTheMachinesTime) {
  const absl::Time before = absl::Now();
  const absl::Time now = Clock::Real()->Now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, absl::Now());
}

TEST(RealClockTest, ADeadlineThatHasPassedIsNotWaitedFor) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  EXPECT_TRUE(Clock::Real()->WaitUntil(&never, &mutex, absl::InfinitePast()));
  EXPECT_TRUE(Clock::Real()->WaitUntil(&never, &mutex, absl::Now()));
}

TEST(RealClockTest, WaitsUntilTheDeadline) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  const absl::Time deadline = absl::Now() + absl::Milliseconds(1);
  while (!Clock::Real()->WaitUntil(&never, &mutex, deadline)) {
  }
  EXPECT_GE(absl::Now(), deadline);
}

TEST(RealClockTest, SleepOfNothingReturns) {
  Clock::Real()->Sleep(absl::ZeroDuration());
  Clock::Real()->Sleep(-absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep

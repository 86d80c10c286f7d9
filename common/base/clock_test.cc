#include "lockstep/common/base/clock.h"

#include <ctime>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(RealClockTest, ReturnsTheMachinesDate) {
  const absl::Time before = absl::Now();
  const absl::Time now = Clock::Real()->WallTime();
  EXPECT_LE(before, now);
  EXPECT_LE(now, absl::Now());
}

TEST(RealClockTest, MeasuresDurationsByTheMonotonicClock) {
  const auto monotonic = [] {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::UnixEpoch() + absl::DurationFromTimespec(now);
  };
  const absl::Time before = monotonic();
  const absl::Time now = Clock::Real()->Now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, monotonic());
}

TEST(RealClockTest, ADeadlineThatHasPassedIsNotWaitedFor) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  EXPECT_TRUE(Clock::Real()->WaitUntil(&never, &mutex, absl::InfinitePast()));
  EXPECT_TRUE(Clock::Real()->WaitUntil(&never, &mutex, Clock::Real()->Now()));
}

TEST(RealClockTest, WaitsUntilTheDeadline) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  const absl::Time deadline = Clock::Real()->Now() + absl::Milliseconds(1);
  while (!Clock::Real()->WaitUntil(&never, &mutex, deadline)) {
  }
  EXPECT_GE(Clock::Real()->Now(), deadline);
}

TEST(RealClockTest, SleepOfNothingReturns) {
  Clock::Real()->Sleep(absl::ZeroDuration());
  Clock::Real()->Sleep(-absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep

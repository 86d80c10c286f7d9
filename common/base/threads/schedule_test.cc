#include "lockstep/common/base/threads/schedule.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(ScheduleTest, DatesComeAtAFixedPeriod) {
  EXPECT_EQ(NextDate(At(0), absl::Seconds(2), At(0)), At(2));
  EXPECT_EQ(NextDate(At(2), absl::Seconds(2), At(3.5)), At(4));
}

TEST(ScheduleTest, ADateThatIsDueNowIsNotMissed) {
  EXPECT_EQ(NextDate(At(0), absl::Seconds(2), At(2)), At(2));
  EXPECT_EQ(NextDate(At(0), absl::Seconds(2), At(4)), At(4));
}

TEST(ScheduleTest, MissedDatesAreSkippedWithoutDrift) {
  EXPECT_EQ(NextDate(At(0), absl::Seconds(2), At(2.5)), At(4));
  EXPECT_EQ(NextDate(At(0), absl::Seconds(2), At(7.5)), At(8));
}

}  // namespace
}  // namespace lockstep

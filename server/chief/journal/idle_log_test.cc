#include "lockstep/server/chief/journal/idle_log.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Returns the number of lines logged during `time`, starting at `now`.
int Lines(absl::Duration time, absl::Time* now, IdleLog* log) {
  int lines = 0;
  for (const absl::Time end = *now + time; *now < end; *now += absl::Seconds(1)) lines += log->Take(*now, true) ? 1 : 0;
  return lines;
}

TEST(IdleLogTest, AWaitIsLoggedLessAndLessOften) {
  IdleLog log;
  absl::Time now = absl::FromUnixSeconds(1000);
  EXPECT_TRUE(log.Take(now, true)) << "at once, from the start";
  EXPECT_EQ(Lines(absl::Seconds(29), &now, &log), 0);
  EXPECT_EQ(Lines(absl::Minutes(1), &now, &log), 1);
  EXPECT_EQ(Lines(absl::Hours(1), &now, &log), 7);
  EXPECT_EQ(Lines(absl::Hours(10), &now, &log), 60);
}

TEST(IdleLogTest, AShortWaitIsNotLogged) {
  IdleLog log;
  absl::Time now = absl::FromUnixSeconds(1000);
  log.Take(now, false);
  EXPECT_EQ(Lines(absl::Seconds(5), &now, &log), 0);
  EXPECT_EQ(Lines(absl::Seconds(5), &now, &log), 1);
  log.Take(now, false);
  EXPECT_EQ(Lines(absl::Seconds(20), &now, &log), 1) << "a new wait begins with a short time";
}

}  // namespace
}  // namespace lockstep

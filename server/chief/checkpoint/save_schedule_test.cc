#include "lockstep/server/chief/checkpoint/save_schedule.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

SaveSchedule NewSchedule(double period_seconds) {
  SaveSchedule::Options options;
  options.period = absl::Seconds(period_seconds);
  return SaveSchedule(options, At(0));
}

TEST(SaveScheduleTest, ASaveIsDueEveryPeriod) {
  SaveSchedule schedule = NewSchedule(10);
  EXPECT_FALSE(schedule.TakeDue(At(9), 5));
  EXPECT_TRUE(schedule.TakeDue(At(10), 5));
  EXPECT_FALSE(schedule.TakeDue(At(10), 5));
  EXPECT_FALSE(schedule.TakeDue(At(19), 6));
  EXPECT_TRUE(schedule.TakeDue(At(20), 6));
}

TEST(SaveScheduleTest, ALateLookDelaysTheNextDate) {
  SaveSchedule schedule = NewSchedule(10);
  EXPECT_TRUE(schedule.TakeDue(At(37), 5));
  EXPECT_FALSE(schedule.TakeDue(At(46), 6));
  EXPECT_TRUE(schedule.TakeDue(At(47), 6));
}

TEST(SaveScheduleTest, WithoutAPeriodTheClockAsksForNone) { EXPECT_FALSE(NewSchedule(0).TakeDue(At(1e9), 5)); }

TEST(SaveScheduleTest, ASavedStepIsNotDueButMovesTheDate) {
  SaveSchedule schedule = NewSchedule(10);
  schedule.OnSaved(5, "ckpt-5");
  EXPECT_FALSE(schedule.TakeDue(At(10), 5));
  EXPECT_FALSE(schedule.TakeDue(At(11), 6));
  EXPECT_TRUE(schedule.TakeDue(At(20), 6));
}

TEST(SaveScheduleTest, KnowsWhatIsSaved) {
  SaveSchedule schedule = NewSchedule(10);
  EXPECT_FALSE(schedule.HasSaved(0));
  EXPECT_EQ(schedule.checkpoint(), "");
  schedule.OnSaved(0, "ckpt-0");
  EXPECT_TRUE(schedule.HasSaved(0));
  EXPECT_FALSE(schedule.HasSaved(1));
  schedule.OnSaved(7, "ckpt-7");
  EXPECT_TRUE(schedule.HasSaved(6));
  EXPECT_EQ(schedule.checkpoint(), "ckpt-7");
}

TEST(SaveScheduleTest, RetriesTransientErrorsAfterDelays) {
  SaveSchedule schedule = NewSchedule(10);
  absl::Duration last = absl::ZeroDuration();
  for (const auto& error : {absl::InternalError("I/O"), absl::ResourceExhaustedError("full"),
                            absl::UnavailableError("away"), absl::UnknownError("may be there")}) {
    const auto retry = schedule.RetryAt(At(1), error);
    ASSERT_TRUE(retry.has_value());
    EXPECT_GT(*retry - At(1), last);
    last = *retry - At(1);
  }
}

TEST(SaveScheduleTest, OtherErrorsAndSuccessAreNotTriedAgain) {
  SaveSchedule schedule = NewSchedule(10);
  for (const auto& status : {absl::OkStatus(), absl::FailedPreconditionError("taken over"),
                             absl::DeadlineExceededError("hangs"), absl::DataLossError("damaged")}) {
    EXPECT_FALSE(schedule.RetryAt(At(1), status).has_value()) << status;
  }
}

TEST(SaveScheduleTest, NothingIsTriedAgainAfterTheDeadline) {
  SaveSchedule schedule = NewSchedule(10);
  schedule.LimitRetries(At(20));
  EXPECT_TRUE(schedule.RetryAt(At(1), absl::InternalError("I/O")).has_value());
  EXPECT_FALSE(schedule.RetryAt(At(20), absl::InternalError("I/O")).has_value());
}

TEST(SaveScheduleTest, KnowsIfFollowersWentOnSinceSnapshot) {
  SaveSchedule schedule({}, absl::UnixEpoch());
  EXPECT_FALSE(schedule.FollowersWentOn(5, 1)) << "there is none";
  schedule.OnSnapshot(5, 1);
  EXPECT_FALSE(schedule.FollowersWentOn(5, 1));
  EXPECT_TRUE(schedule.FollowersWentOn(5, 2));
  EXPECT_FALSE(schedule.FollowersWentOn(6, 2)) << "it is of another step";
  schedule.OnSnapshot(5, 2);
  EXPECT_TRUE(schedule.FollowersWentOn(5, 2)) << "the checkpoint may be of the first";
  schedule.OnSnapshot(6, 2);
  EXPECT_FALSE(schedule.FollowersWentOn(6, 2));
}

}  // namespace
}  // namespace lockstep

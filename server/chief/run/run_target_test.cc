#include "lockstep/server/chief/run/run_target.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

config::v1::TrainingConfig Steps(int64_t steps) {
  config::v1::TrainingConfig config;
  config.set_steps(steps);
  return config;
}

config::v1::TrainingConfig Additional(int64_t steps) {
  config::v1::TrainingConfig config;
  config.set_additional_steps(steps);
  return config;
}

v1::RunRecord RecordOf(const RunTarget& target, bool finished = true) {
  v1::RunRecord record;
  target.FillRecord(&record);
  record.set_finished(finished);
  return record;
}

TEST(RunTargetTest, StepsAreAbsolute) {
  EXPECT_EQ(RunTarget::Resolve(Steps(100), nullptr, 0).total_steps(), 100);
  const v1::RunRecord record;
  EXPECT_EQ(RunTarget::Resolve(Steps(100), &record, 40).total_steps(), 100);
  EXPECT_FALSE(RecordOf(RunTarget::Resolve(Steps(100), &record, 40)).has_counted());
}

TEST(RunTargetTest, ARunMayHaveNoBound) {
  config::v1::TrainingConfig config;
  config.set_unbounded(true);
  EXPECT_EQ(RunTarget::Resolve(config, nullptr, 7).total_steps(), RunTarget::kUnbounded);
}

TEST(RunTargetTest, AdditionalStepsAreCountedOnceForAllLives) {
  const RunTarget first = RunTarget::Resolve(Additional(100), nullptr, 0);
  EXPECT_EQ(first.total_steps(), 100);
  const v1::RunRecord record = RecordOf(first);
  EXPECT_EQ(record.counted().base(), 0);
  for (int64_t killed_at : {0, 40, 99}) {
    EXPECT_EQ(RunTarget::Resolve(Additional(100), &record, killed_at).total_steps(), 100) << killed_at;
  }
  // The run ended successfully, so the same command requests the same number of steps again.
  const RunTarget second = RunTarget::Resolve(Additional(100), &record, 100);
  EXPECT_EQ(second.total_steps(), 200);
  const v1::RunRecord next = RecordOf(second);
  EXPECT_EQ(next.counted().base(), 100);
  EXPECT_EQ(RunTarget::Resolve(Additional(100), &next, 100).total_steps(), 200) << "an incarnation that saved nothing";
  EXPECT_EQ(RunTarget::Resolve(Additional(30), &next, 150).total_steps(), 180) << "another count is another request";
}

TEST(RunTargetTest, CountsThatWouldOverflowHaveNoBound) {
  EXPECT_EQ(RunTarget::Resolve(Additional(RunTarget::kUnbounded), nullptr, 5).total_steps(), RunTarget::kUnbounded);
}

TEST(RunTargetTest, AnEndThatWasAskedForStandsUntilItIsReached) {
  RunTarget target = RunTarget::Resolve(Steps(100), nullptr, 0);
  EXPECT_TRUE(target.EndAt(37, "a person"));
  EXPECT_EQ(target.total_steps(), 37);
  EXPECT_EQ(target.configured(), 100);
  EXPECT_FALSE(target.EndAt(40, "too late"));
  const v1::RunRecord record = RecordOf(target);
  EXPECT_EQ(record.end().step(), 37);
  EXPECT_EQ(record.end().reason(), "a person");
  EXPECT_EQ(RunTarget::Resolve(Steps(100), &record, 30).total_steps(), 37) << "killed before the end was saved";
  const RunTarget again = RunTarget::Resolve(Steps(100), &record, 37);
  EXPECT_EQ(again.total_steps(), 100) << "started again after a clean end";
  EXPECT_FALSE(RecordOf(again).has_end());
}

TEST(RunTargetTest, AnEndThatComesAStepEarlierKeepsItsReason) {
  RunTarget target = RunTarget::Resolve(Steps(100), nullptr, 0);
  target.EndAt(37, "a person");
  EXPECT_TRUE(target.EndAt(36, "no worker made the last step"));
  EXPECT_EQ(target.total_steps(), 36);
  EXPECT_EQ(RecordOf(target).end().reason(), "a person");
}

TEST(RunTargetTest, AnEndCountsAsTheEndOfAdditionalSteps) {
  RunTarget target = RunTarget::Resolve(Additional(100), nullptr, 0);
  target.EndAt(37, "a person");
  const v1::RunRecord record = RecordOf(target);
  EXPECT_EQ(RunTarget::Resolve(Additional(100), &record, 36).total_steps(), 37);
  EXPECT_EQ(RunTarget::Resolve(Additional(100), &record, 37).total_steps(), 137);
}

TEST(RunTargetTest, AnEndThatWasSavedButNotToldIsNoCleanEnd) {
  RunTarget target = RunTarget::Resolve(Steps(100), nullptr, 0);
  target.EndAt(37, "a person");
  v1::RunRecord record = RecordOf(target, /*finished=*/false);
  EXPECT_EQ(RunTarget::Resolve(Steps(100), &record, 37).total_steps(), 37);
  record = RecordOf(RunTarget::Resolve(Additional(50), nullptr, 0), /*finished=*/false);
  EXPECT_EQ(RunTarget::Resolve(Additional(50), &record, 50).total_steps(), 50);
}

TEST(RunTargetTest, AnEndBehindTheBoundIsNone) {
  RunTarget target = RunTarget::Resolve(Steps(100), nullptr, 0);
  EXPECT_FALSE(target.EndAt(100, "late"));
  target.EndAt(80, "a person");
  const v1::RunRecord record = RecordOf(target);
  EXPECT_EQ(RunTarget::Resolve(Steps(60), &record, 50).total_steps(), 60);
}

}  // namespace
}  // namespace lockstep

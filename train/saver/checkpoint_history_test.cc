#include "lockstep/train/saver/checkpoint_history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::FromUnixSeconds(1000);

std::vector<std::string> Names(const CheckpointHistory& history) {
  std::vector<std::string> names;
  for (const auto& entry : history.entries()) names.push_back(entry.prefix);
  return names;
}

// SAVE-01, SAVE-02, SAVE-03
TEST(CheckpointHistoryTest, SavingAgainMakesACheckpointTheNewest) {
  CheckpointHistory history(2, absl::Hours(10000), kStart);
  for (const char* prefix : {"s1", "s2", "s3"}) history.Record(prefix, kStart);
  EXPECT_THAT(Names(history), ElementsAre("s2", "s3"));
  EXPECT_THAT(history.TakeDoomed(), ElementsAre("s1"));
  history.Record("s2", kStart);
  EXPECT_THAT(Names(history), ElementsAre("s3", "s2"));
  EXPECT_THAT(history.TakeDoomed(), IsEmpty());
  history.Record("s1", kStart);
  EXPECT_THAT(Names(history), ElementsAre("s2", "s1"));
  EXPECT_THAT(history.TakeDoomed(), ElementsAre("s3"));
}

// SAVE-12
TEST(CheckpointHistoryTest, OneOfEachPeriodIsKeptForGood) {
  CheckpointHistory history(2, absl::Milliseconds(700), kStart);
  const absl::Time now = kStart + absl::Seconds(1);
  for (const char* prefix : {"s1", "s2", "s3", "s4"}) history.Record(prefix, now);
  EXPECT_THAT(Names(history), ElementsAre("s3", "s4"));
  EXPECT_THAT(history.TakeDoomed(), ElementsAre("s2")) << "s1 is kept; the next to be kept is of 1.4 s or later";
}

TEST(CheckpointHistoryTest, OneThatIsSavedExactlyAtThePeriodsEndIsNotKept) {
  CheckpointHistory history(1, absl::Seconds(1), kStart);
  history.Record("s1", kStart + absl::Seconds(1));
  history.Record("s2", kStart + absl::Seconds(1));
  EXPECT_THAT(history.TakeDoomed(), ElementsAre("s1"));
}

// SAVE-06
TEST(CheckpointHistoryTest, WithoutALimitNothingIsRemembered) {
  CheckpointHistory history(0, absl::Hours(1), kStart);
  history.Record("s1", kStart);
  history.Record("s2", kStart);
  EXPECT_THAT(Names(history), IsEmpty());
  EXPECT_THAT(history.TakeDoomed(), IsEmpty());
}

// In the original, such a list stays too long forever, because each save deletes only one entry.
TEST(CheckpointHistoryTest, AListThatIsTooLongShrinksToTheLimitAtOnce) {
  CheckpointHistory history(2, absl::Hours(10000), kStart);
  history.Set({{"s1", kStart}, {"s2", kStart}, {"s3", kStart}, {"s4", kStart}});
  EXPECT_THAT(history.TakeDoomed(), IsEmpty());
  history.Record("s5", kStart);
  EXPECT_THAT(Names(history), ElementsAre("s4", "s5"));
  EXPECT_THAT(history.TakeDoomed(), ElementsAre("s1", "s2", "s3"));
}

TEST(CheckpointHistoryTest, TakesWhatWasPutBackUnlessItIsSavedAgain) {
  CheckpointHistory history(1, absl::Hours(10000), kStart);
  history.PutBack("s1");
  history.PutBack("s2");
  history.Record("d/../s1", kStart);
  EXPECT_THAT(history.TakeDoomed(), ElementsAre("s2"));
}

// Both names denote the same files, so deleting one checkpoint would delete the other.
TEST(CheckpointHistoryTest, TwoSpellingsOfAPathAreOneCheckpoint) {
  CheckpointHistory history(1, absl::Hours(10000), kStart);
  history.Record("d/s1", kStart);
  history.Record("./d//s1", kStart);
  EXPECT_THAT(Names(history), ElementsAre("./d//s1"));
  EXPECT_THAT(history.TakeDoomed(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::train

#include "lockstep/server/sync/machine/staging_places.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Verdict = StagingPlaces::Verdict;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

TEST(StagingPlacesTest, NoMoreAreStagedThanThereArePlaces) {
  StagingPlaces places(2);
  EXPECT_EQ(places.Ask(1, At(0)), Verdict::kStage);
  EXPECT_EQ(places.Ask(2, At(0)), Verdict::kStage);
  EXPECT_EQ(places.Ask(3, At(0)), Verdict::kWait);
  EXPECT_EQ(places.Ask(1, At(1)), Verdict::kStage) << "a later frame of the same contribution";
  EXPECT_EQ(places.Ask(3, At(1)), Verdict::kWait);
  EXPECT_THAT(places.Admit(At(1)), IsEmpty());
}

TEST(StagingPlacesTest, AFreePlaceGoesToTheFirstInLine) {
  StagingPlaces places(1);
  places.Ask(1, At(0));
  places.Ask(3, At(0));
  places.Ask(2, At(0));
  places.End(1);
  EXPECT_EQ(places.Ask(4, At(0)), Verdict::kWait) << "it does not overtake";
  EXPECT_THAT(places.Admit(At(0)), ElementsAre(3));
  EXPECT_EQ(places.Ask(3, At(0)), Verdict::kStage);
  places.End(2);  // it leaves the line
  places.End(3);
  EXPECT_THAT(places.Admit(At(0)), ElementsAre(4));
}

TEST(StagingPlacesTest, WhoStandsStillWhileOthersWaitLosesThePlace) {
  StagingPlaces places(2);
  places.Ask(1, At(0));
  places.Ask(2, At(1));
  EXPECT_THAT(places.TakeBack(At(9)), IsEmpty()) << "nobody waits";
  places.Ask(3, At(1));
  EXPECT_THAT(places.TakeBack(At(9)), ElementsAre(1)) << "one waits, and 1 has stood still longer";
  EXPECT_THAT(places.Admit(At(9)), ElementsAre(3));
  EXPECT_EQ(places.Ask(1, At(9)), Verdict::kDrop) << "the rest of it";
  places.End(1);
  EXPECT_EQ(places.Ask(1, At(9)), Verdict::kWait) << "its next contribution";
}

TEST(StagingPlacesTest, AFrameKeepsThePlace) {
  StagingPlaces places(1);
  places.Ask(1, At(0));
  places.Ask(2, At(0));
  places.Ask(1, At(5));
  EXPECT_THAT(places.TakeBack(At(4)), IsEmpty());
  places.Touch(At(7));
  EXPECT_THAT(places.TakeBack(At(6)), IsEmpty());
  EXPECT_THAT(places.TakeBack(At(7)), ElementsAre(1));
}

TEST(StagingPlacesTest, WhoIsDroppedWaitsNoLonger) {
  StagingPlaces places(1);
  places.Ask(1, At(0));
  places.Ask(2, At(0));
  places.Drop(2);
  EXPECT_TRUE(places.drops(2));
  EXPECT_EQ(places.Ask(2, At(0)), Verdict::kDrop);
  places.End(1);
  EXPECT_THAT(places.Admit(At(0)), IsEmpty());
}

TEST(StagingPlacesTest, ClearFreesAll) {
  StagingPlaces places(1);
  places.Ask(1, At(0));
  places.Ask(2, At(0));
  EXPECT_THAT(places.Clear(), ElementsAre(2));
  EXPECT_EQ(places.Ask(3, At(0)), Verdict::kStage);
}

}  // namespace
}  // namespace lockstep

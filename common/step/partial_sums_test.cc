#include "lockstep/common/step/partial_sums.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr uint64_t kLarge = uint64_t{1} << 30;

TEST(PartialSumsTest, TheLeastSufficesForArrivalInOrder) {
  EXPECT_EQ(LeastPartialSums(1), 1);
  EXPECT_EQ(LeastPartialSums(2), 1);
  EXPECT_EQ(LeastPartialSums(3), 1) << "the first two are added before the third comes";
  EXPECT_EQ(LeastPartialSums(4), 2);
  EXPECT_EQ(LeastPartialSums(15), 3);
  EXPECT_EQ(LeastPartialSums(16), 4);
}

TEST(PartialSumsTest, TheMostIsEverySecondSlot) {
  EXPECT_EQ(MostPartialSums(1), 1);
  EXPECT_EQ(MostPartialSums(2), 1);
  EXPECT_EQ(MostPartialSums(7), 4);
  EXPECT_EQ(MostPartialSums(8), 4);
}

TEST(PartialSumsTest, LargeSumsAreBoundedByDefault) {
  EXPECT_EQ(DefaultPartialSums(1, kLarge), 1);
  EXPECT_EQ(DefaultPartialSums(2, kLarge), 1);
  EXPECT_EQ(DefaultPartialSums(3, kLarge), 2);
  EXPECT_EQ(DefaultPartialSums(8, kLarge), 3);
  EXPECT_EQ(DefaultPartialSums(9, kLarge), 4);
  EXPECT_EQ(DefaultPartialSums(16, kLarge), 4);
  EXPECT_EQ(DefaultPartialSums(1024, kLarge), 10);
  for (int64_t slots = 1; slots < 100; ++slots) EXPECT_GE(DefaultPartialSums(slots, kLarge), LeastPartialSums(slots));
}

TEST(PartialSumsTest, SmallSumsAreNotBoundedByDefault) {
  EXPECT_EQ(DefaultPartialSums(16, 1 << 20), 8);
  EXPECT_EQ(DefaultPartialSums(64, 1 << 20), 17);
  EXPECT_EQ(DefaultPartialSums(16, 0), 8);
}

TEST(PartialSumsTest, StagesFewLargeOrManySmallOnes) {
  EXPECT_EQ(DefaultStagedContributions(kLarge), 3);
  EXPECT_EQ(DefaultStagedContributions(1 << 20), 16);
  EXPECT_EQ(DefaultStagedContributions(0), 16 << 20);
}

}  // namespace
}  // namespace lockstep

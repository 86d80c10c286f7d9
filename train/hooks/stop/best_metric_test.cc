#include "lockstep/train/hooks/stop/best_metric.h"

#include <cmath>

#include "gtest/gtest.h"

namespace lockstep::train {
namespace {

TEST(BestMetricTest, ATieIsNoImprovement) {
  BestMetric best;
  EXPECT_EQ(best.StepsSince(9), 0);
  EXPECT_TRUE(best.Observe(1, 5));
  EXPECT_FALSE(best.Observe(2, 5));
  EXPECT_TRUE(best.Observe(3, 4));
  EXPECT_EQ(best.value(), 4);
  EXPECT_EQ(best.StepsSince(9), 6);
}

TEST(BestMetricTest, MayBeALargestValueAndAskForMore) {
  BestMetric best(/*minimize=*/false, /*min_delta=*/0.5);
  EXPECT_TRUE(best.Observe(1, 1));
  EXPECT_FALSE(best.Observe(2, 1.5));
  EXPECT_TRUE(best.Observe(3, 1.75));
}

TEST(BestMetricTest, NaNIsBetterThanNothingAlone) {
  BestMetric best;
  EXPECT_TRUE(best.Observe(1, std::nan("")));
  EXPECT_FALSE(best.Observe(2, std::nan("")));
  EXPECT_TRUE(best.Observe(3, 7));
  EXPECT_FALSE(best.Observe(4, std::nan("")));
  EXPECT_EQ(best.step(), 3);
}

TEST(BestMetricTest, ComesBackFromAState) {
  HookState state;
  BestMetric best, other;
  best.Observe(3, 0.1);
  best.Save(&state);
  ASSERT_TRUE(other.Restore(state).ok());
  EXPECT_EQ(other.value(), 0.1);
  EXPECT_EQ(other.step(), 3);
  BestMetric().Save(&state);
  ASSERT_TRUE(other.Restore(state).ok());
  EXPECT_FALSE(other.value().has_value());
  EXPECT_FALSE(other.Restore(HookState()).ok());
}

}  // namespace
}  // namespace lockstep::train

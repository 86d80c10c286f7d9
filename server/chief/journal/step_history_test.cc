#include "lockstep/server/chief/journal/step_history.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(StepHistoryTest, AShortRunHasAPointForEachStep) {
  StepHistory history;
  for (int64_t step = 1; step <= 3; ++step) history.Add(step, 1000 * step, 0.5 * static_cast<double>(step), 0.1);
  ASSERT_EQ(history.points().size(), 3u);
  EXPECT_EQ(history.points()[2].step(), 3);
  EXPECT_EQ(history.points()[2].loss(), 1.5);
  EXPECT_FALSE(history.open());
}

TEST(StepHistoryTest, ALongRunKeepsItsMeansAndItsSlowestStep) {
  StepHistory history(8);
  for (int64_t step = 1; step <= 1000; ++step) {
    history.Add(step, step, static_cast<double>(step), step == 77 ? 9 : 0.1);
    ASSERT_LT(history.points().size(), 8u);
  }
  double sum = 0, slowest = 0;
  int64_t steps = 0;
  std::vector<v1::HistoryPoint> all = history.points();
  if (history.open()) all.push_back(*history.open());
  for (const v1::HistoryPoint& point : all) {
    steps += point.steps();
    EXPECT_EQ(point.step(), steps) << "no step is missing";
    sum += point.loss() * static_cast<double>(point.steps());
    slowest = std::max(slowest, point.slowest_seconds());
  }
  EXPECT_EQ(steps, 1000);
  EXPECT_NEAR(sum, 1000 * 1001 / 2, 1e-6);
  EXPECT_EQ(slowest, 9);
}

TEST(StepHistoryTest, ARestartDropsTheStepsThatAreComputedAgain) {
  StepHistory history;
  for (int64_t step = 1; step <= 10; ++step) history.Add(step, step, 1, 0.1);
  const int64_t version = history.version();
  EXPECT_EQ(history.Rewind(7), 3);
  EXPECT_EQ(history.points().size(), 7u);
  EXPECT_NE(history.version(), version);
  EXPECT_EQ(history.Rewind(7), 0);
  EXPECT_EQ(history.Rewind(20), 0) << "a checkpoint may be newer than the last line of a file";
}

TEST(StepHistoryTest, PointsOfAFileAreMergedToo) {
  StepHistory history(8);
  v1::HistoryPoint point;
  point.set_steps(1);
  for (int64_t step = 1; step <= 100; ++step) {
    point.set_step(step);
    history.AddPoint(point);
    ASSERT_LT(history.points().size(), 8u);
  }
  point.set_step(-5);
  history.AddPoint(point);
  EXPECT_EQ(history.points().back().step(), 100) << "a line that makes no sense is ignored";
  point.set_step(50);
  history.AddPoint(point);
  EXPECT_EQ(history.points().back().step(), 50) << "an incarnation continued at step 49";
}

}  // namespace
}  // namespace lockstep

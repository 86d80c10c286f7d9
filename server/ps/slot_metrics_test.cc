#include "lockstep/server/ps/slot_metrics.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

SlotMetrics Slot(double weight, const std::vector<std::pair<std::string, float>>& values) {
  v1::Summary summary;
  for (const auto& [name, number] : values) {
    v1::Summary::Value* const value = summary.add_value();
    value->set_tag(name);
    value->set_simple_value(number);
  }
  return {weight, summary.SerializeAsString()};
}

std::vector<std::pair<std::string, double>> Fold(const std::vector<SlotMetrics>& slots) {
  std::vector<std::pair<std::string, double>> means;
  for (const StepMetric& metric : FoldMetrics(slots)) means.emplace_back(metric.name, metric.mean);
  return means;
}

TEST(SlotMetricsTest, MeanIsWeighted) {
  EXPECT_THAT(Fold({Slot(1, {{"accuracy", 0.5f}}), Slot(3, {{"accuracy", 1}})}), ElementsAre(Pair("accuracy", 0.875)));
}

TEST(SlotMetricsTest, MeanIsOverSlotsThatReport) {
  EXPECT_THAT(Fold({Slot(1, {{"b", 2}}), Slot(1, {{"a", 4}, {"b", 3}}), Slot(1, {})}),
              ElementsAre(Pair("b", 2.5), Pair("a", 4)));
}

TEST(SlotMetricsTest, SumFollowsOrderOfSlots) {
  const std::vector<SlotMetrics> slots = {Slot(1, {{"x", 1e30f}}), Slot(1, {{"x", 1}}), Slot(1, {{"x", -1e30f}})};
  EXPECT_THAT(Fold(slots), ElementsAre(Pair("x", 0.0)));
  EXPECT_THAT(Fold({slots[0], slots[2], slots[1]}), ElementsAre(Pair("x", 1.0 / 3)));
}

TEST(SlotMetricsTest, MetricWithoutWeightIsAbsent) {
  EXPECT_THAT(Fold({Slot(0, {{"a", 1}, {"b", 1}}), Slot(2, {{"b", 3}})}), ElementsAre(Pair("b", 3)));
}

TEST(SlotMetricsTest, NumbersNeedNotBeFinite) {
  const auto means = Fold({Slot(1, {{"a", std::nanf("")}}), Slot(1, {{"a", 1}})});
  ASSERT_EQ(means.size(), 1u);
  EXPECT_TRUE(std::isnan(means[0].second));
}

TEST(SlotMetricsTest, NumberOfMetricsIsBounded) {
  std::vector<std::pair<std::string, float>> values;
  for (int i = 0; i < 40; ++i) values.emplace_back(std::string(1 + i, 'm'), i);
  const auto means = Fold({Slot(1, values), Slot(1, values)});
  ASSERT_EQ(means.size(), kMaxStepMetrics);
  EXPECT_THAT(means.back(), Pair(std::string(32, 'm'), 31));
  EXPECT_THAT(Fold({Slot(1, {{std::string(201, 'm'), 1}, {std::string(200, 'm'), 2}})}),
              ElementsAre(Pair(std::string(200, 'm'), 2)));
}

TEST(SlotMetricsTest, OtherBytesAreIgnored) {
  v1::Summary picture;
  picture.add_value()->set_tag("picture");
  picture.mutable_value(0)->mutable_image();
  EXPECT_THAT(Fold({{1, "no summary"}, {1, picture.SerializeAsString()}, {1, ""}}), IsEmpty());
}

}  // namespace
}  // namespace lockstep

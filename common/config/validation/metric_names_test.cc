#include "lockstep/common/config/validation/metric_names.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(MetricNamesTest, KnowsTheBuiltInOnes) {
  for (const char* metric : {"accuracy", "mean_loss", "rmse", "auc", "confusion_matrix", "top_1", "top_17"}) {
    EXPECT_TRUE(IsBuiltInMetric(metric)) << metric;
    EXPECT_EQ(RegisteredMetricName(metric), absl::nullopt) << metric;
  }
  for (const char* metric : {"", "f1", "top_0", "top_", "top_-1", "top_x", "Accuracy", "registered:accuracy"}) {
    EXPECT_FALSE(IsBuiltInMetric(metric)) << metric;
  }
}

TEST(MetricNamesTest, FindsTheNameOfARegisteredOne) {
  EXPECT_EQ(RegisteredMetricName("registered:f1"), "f1");
  EXPECT_EQ(RegisteredMetricName("registered:a:b"), "a:b");
  for (const char* metric : {"", "f1", "registered", "registered:", "Registered:f1"}) {
    EXPECT_EQ(RegisteredMetricName(metric), absl::nullopt) << metric;
  }
}

}  // namespace
}  // namespace lockstep

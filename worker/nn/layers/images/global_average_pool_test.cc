#include "lockstep/worker/nn/layers/images/global_average_pool.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] = "name: 'x' global_average_pool {}";

void ExpectMeans(int64_t batch, const Shape& shape, int threads = 1) {
  LayerRunner runner(MakeGlobalAveragePool, kConfig, {shape}, {batch, threads});
  const int64_t columns = shape.dim(shape.rank() - 1);
  const int64_t rows = shape.num_elements() / columns;
  const auto means = [&](const std::vector<std::vector<double>>& arguments) {
    std::vector<double> result(batch * columns);
    for (int64_t i = 0; i < batch * rows * columns; ++i) {
      result[i / (rows * columns) * columns + i % columns] += arguments[0][i] / static_cast<double>(rows);
    }
    return result;
  };
  EXPECT_EQ(CompareWithReference(&runner, {}, means, 1e-6), "") << batch << " x " << shape.ToString();
}

TEST(GlobalAveragePoolTest, AveragesAllDimensionsButTheLast) {
  ExpectMeans(2, {3, 4, 5});
  ExpectMeans(3, {7, 2});
  ExpectMeans(1, {1, 1, 1});
  ExpectMeans(5, {1, 6});
}

TEST(GlobalAveragePoolTest, ColumnsMayEndAnywhereInAVector) {
  for (const int64_t columns : {1, 2, 7, 8, 9, 31, 32, 33, 43}) ExpectMeans(2, {2, 3, columns});
}

TEST(GlobalAveragePoolTest, ThreadsShareTheExamples) { ExpectMeans(9, {2, 3, 10}, 3); }

TEST(GlobalAveragePoolTest, DoesNotComputeAnUnwantedGradient) {
  LayerRunner runner(MakeGlobalAveragePool, kConfig, {Shape{3, 2}}, {});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward({1, 2}, LayerRunner::InputGradients::kNone);
  for (const float x : runner.input_gradient()) EXPECT_TRUE(std::isnan(x));
}

TEST(GlobalAveragePoolTest, ANotANumberStaysInItsColumn) {
  LayerRunner runner(MakeGlobalAveragePool, kConfig, {Shape{3, 9}}, {2});
  runner.input()[27 + 9 + 8] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 18; ++i) EXPECT_EQ(std::isnan(runner.output()[i]), i == 17) << i;
}

TEST(GlobalAveragePoolTest, RefusesAVector) {
  EXPECT_THAT(LayerStatus(MakeGlobalAveragePool, kConfig, {Shape{5}}).message(), HasSubstr("not shape [5]"));
}

}  // namespace
}  // namespace lockstep

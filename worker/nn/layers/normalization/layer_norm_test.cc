#include "lockstep/worker/nn/layers/normalization/layer_norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// The arguments are x, gamma and beta; rows have gamma's size.
std::vector<double> Reference(double epsilon, const std::vector<std::vector<double>>& arguments) {
  const std::vector<double>& x = arguments[0];
  const size_t columns = arguments[1].size();
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += columns) {
    double mean = 0;
    double variance = 0;
    for (size_t c = 0; c < columns; ++c) mean += x[row + c] / columns;
    for (size_t c = 0; c < columns; ++c) variance += (x[row + c] - mean) * (x[row + c] - mean) / columns;
    for (size_t c = 0; c < columns; ++c) {
      y[row + c] = arguments[1][c] * (x[row + c] - mean) / std::sqrt(variance + epsilon) + arguments[2][c];
    }
  }
  return y;
}

void ExpectLayerNorm(int64_t batch, const Shape& shape, float epsilon, int threads = 1) {
  LayerRunner runner(MakeLayerNorm, absl::StrCat("name: 'x' layer_norm { epsilon: ", epsilon, " }"), {shape},
                     {batch, threads});
  EXPECT_EQ(CompareWithReference(
                &runner, {"gamma", "beta"}, [&](const auto& arguments) { return Reference(epsilon, arguments); }, 5e-5),
            "")
      << batch << " x " << shape.ToString();
}

TEST(LayerNormTest, NormalisesEachRow) {
  for (const int64_t columns : {1, 2, 3, 5, 7, 8, 9, 16, 31, 32, 33, 40, 43, 64, 75}) {
    ExpectLayerNorm(3, {columns}, 0.01f);
  }
}

TEST(LayerNormTest, AllDimensionsButTheLastAreRows) {
  ExpectLayerNorm(2, {3, 5}, 0.01f);
  ExpectLayerNorm(2, {2, 3, 4}, 0.1f);
}

TEST(LayerNormTest, MoreThan64RowsAreSeveralBlocks) {
  for (const int64_t batch : {63, 64, 65, 130}) ExpectLayerNorm(batch, {3}, 0.1f);
  ExpectLayerNorm(200, {4}, 0.1f, 3);
}

TEST(LayerNormTest, EpsilonIsSmallWhenAbsent) {
  LayerRunner runner(MakeLayerNorm, "name: 'x' layer_norm {}", {Shape{5}}, {4});
  for (float& x : runner.input()) x *= 0.01f;  // So small that epsilon counts.
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  const std::vector<double> expected = Reference(
      1e-5, {ToDoubles(runner.input()), ToDoubles(runner.variable("gamma")), ToDoubles(runner.variable("beta"))});
  EXPECT_EQ(FirstDifference(runner.output(), expected, 1e-5), "");
}

TEST(LayerNormTest, TheGradientMayReplaceTheOutputs) {
  LayerRunner runner(MakeLayerNorm, "name: 'x' layer_norm {}", {Shape{11}}, {70});
  const std::vector<float> weights = RandomFloats(70 * 11, 5);
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward(weights);
  const std::vector<double> expected = ToDoubles(runner.input_gradient());
  runner.Backward(weights, LayerRunner::InputGradients::kInPlace);
  EXPECT_EQ(FirstDifference(runner.input_gradient(), expected, 0), "");
  runner.Backward(weights, LayerRunner::InputGradients::kNone);
  for (const float x : runner.input_gradient()) ASSERT_TRUE(std::isnan(x));
  EXPECT_EQ(runner.violations(), "");
}

TEST(LayerNormTest, ANotANumberStaysInItsRow) {
  LayerRunner runner(MakeLayerNorm, "name: 'x' layer_norm {}", {Shape{9}}, {5});
  runner.input()[3 * 9 + 8] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 45; ++i) EXPECT_EQ(std::isnan(runner.output()[i]), i / 9 == 3) << i;
}

TEST(LayerNormTest, DeclaresItsVariables) {
  LayerRunner runner(MakeLayerNorm, "name: 'x' layer_norm {}", {Shape{2, 4}}, {});
  ASSERT_EQ(runner.spec().variables_size(), 2);
  EXPECT_EQ(runner.spec().variables(0).name(), "x/beta");
  EXPECT_TRUE(runner.spec().variables(0).initializer().has_zeros());
  EXPECT_EQ(runner.spec().variables(1).name(), "x/gamma");
  EXPECT_EQ(runner.spec().variables(1).initializer().constant().value(), 1);
  EXPECT_EQ(runner.variable("gamma").size(), 4u);
}

TEST(LayerNormTest, RefusesNumbersOutOfRange) {
  EXPECT_THAT(LayerStatus(MakeLayerNorm, "name: 'x' layer_norm {}", {Shape{}}).message(), HasSubstr("not shape []"));
  EXPECT_THAT(LayerStatus(MakeLayerNorm, "name: 'x' layer_norm { epsilon: 0 }", {Shape{3}}).message(),
              HasSubstr("epsilon is 0"));
  EXPECT_THAT(LayerStatus(MakeLayerNorm, "name: 'x' layer_norm { epsilon: 2 }", {Shape{3}}).message(),
              HasSubstr("epsilon is 2"));
}

}  // namespace
}  // namespace lockstep

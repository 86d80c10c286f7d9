#include "lockstep/worker/nn/layers/normalization/local_response_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

std::vector<double> Reference(int64_t columns, int64_t radius, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t start = i / columns * columns;
    double sum = 0;
    for (int64_t j = std::max(start, i - radius); j <= std::min(start + columns - 1, i + radius); ++j)
      sum += x[j] * x[j];
    y[i] = x[i] * std::pow(2 + 0.5 * sum, -0.75);
  }
  return y;
}

void ExpectNormal(const Shape& shape, int64_t radius, int64_t batch, int threads = 1) {
  LayerRunner runner(MakeLocalResponseNorm,
                     "name: 'x' lrn { bias: 2 alpha: 0.5 beta: 0.75 depth_radius: " + std::to_string(radius) + " }",
                     {shape}, {batch, threads});
  EXPECT_EQ(
      CompareWithReference(
          &runner, {},
          [&](const auto& arguments) { return Reference(shape.dim(shape.rank() - 1), radius, arguments[0]); }, 3e-5),
      "");
}

TEST(LocalResponseNormTest, DividesByTheNeighbours) {
  ExpectNormal(Shape{2, 3, 11}, 2, 2);
  ExpectNormal(Shape{7}, 0, 2);
  ExpectNormal(Shape{3, 5}, 100, 1);
  ExpectNormal(Shape{10, 10, 9}, 3, 3, /*threads=*/3);
}

TEST(LocalResponseNormTest, TheGradientMayOverwriteTheOutputs) {
  LayerRunner separate(MakeLocalResponseNorm, "name: 'x' lrn {}", {Shape{3, 7}}, {2});
  LayerRunner in_place(MakeLocalResponseNorm, "name: 'x' lrn {}", {Shape{3, 7}}, {2});
  const std::vector<float> weights = RandomFloats(42, 5);
  for (LayerRunner* runner : {&separate, &in_place}) ASSERT_EQ(runner->Forward(), absl::OkStatus());
  separate.Backward(weights);
  in_place.Backward(weights, LayerRunner::InputGradients::kInPlace);
  EXPECT_EQ(FirstDifference(in_place.input_gradient(), ToDoubles(separate.input_gradient()), 0), "");
}

TEST(LocalResponseNormTest, RefusesNumbersOutOfRange) {
  const auto message = [](const std::string& options) {
    return std::string(LayerStatus(MakeLocalResponseNorm, "name: 'x' lrn { " + options + " }", {Shape{5}}).message());
  };
  EXPECT_EQ(message(""), "");
  EXPECT_THAT(message("depth_radius: -1"), HasSubstr("depth_radius is -1"));
  EXPECT_THAT(message("bias: 0"), HasSubstr("bias is 0"));
  EXPECT_THAT(message("alpha: -1"), HasSubstr("alpha is -1"));
  EXPECT_THAT(message("beta: inf"), HasSubstr("beta is inf"));
}

}  // namespace
}  // namespace lockstep

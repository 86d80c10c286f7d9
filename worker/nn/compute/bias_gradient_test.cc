#include "lockstep/worker/nn/compute/bias_gradient.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/compute/activation.h"

namespace lockstep {
namespace {

// Row counts around the block size of 256, and column counts around the strip width of 32 and the vector width of 8.
constexpr int64_t kRows[] = {1, 2, 255, 256, 257, 600};
constexpr int64_t kColumns[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 31, 32, 33, 43, 77};

std::vector<double> ColumnSums(int64_t rows, int64_t columns, absl::Span<const float> dx) {
  std::vector<double> sums(columns);
  for (int64_t i = 0; i < rows * columns; ++i) sums[i % columns] += dx[i];
  return sums;
}

TEST(BiasGradientTest, SumsTheColumnsOfAnyShape) {
  ComputeContext compute(1);
  BiasGradient bias_gradient;
  for (const int64_t rows : kRows) {
    for (const int64_t columns : kColumns) {
      const std::vector<float> value = RandomFloats(rows * columns, 1);
      const std::vector<float> dy = RandomIntegers(rows * columns, 2);
      ResultArray dx(rows * columns);
      ResultArray sums(columns);
      bias_gradient.Compute(&compute, {config::v1::RELU}, rows, columns, value.data(), dy.data(), dx.data(),
                            sums.data());
      for (int64_t i = 0; i < rows * columns; ++i) ASSERT_EQ(dx.values()[i], value[i] > 0 ? dy[i] : 0) << i;
      EXPECT_EQ(FirstDifference(sums.values(), ColumnSums(rows, columns, dx.values()), 0), "")
          << rows << " x " << columns;
      EXPECT_TRUE(dx.borders_intact() && sums.borders_intact()) << rows << " x " << columns;
    }
  }
}

TEST(BiasGradientTest, MultipliesByTheSlopeOfEachActivation) {
  ComputeContext compute(1);
  BiasGradient bias_gradient;
  for (const config::v1::Activation kind :
       {config::v1::NONE, config::v1::LEAKY_RELU, config::v1::TANH, config::v1::SIGMOID, config::v1::GELU}) {
    const std::vector<float> value = RandomFloats(300 * 13, 1);
    const std::vector<float> dy = RandomFloats(300 * 13, 2);
    std::vector<float> expected(300 * 13);
    ActivationGradient({kind}, 300 * 13, value.data(), dy.data(), expected.data());
    ResultArray dx(300 * 13);
    ResultArray sums(13);
    bias_gradient.Compute(&compute, {kind}, 300, 13, value.data(), dy.data(), dx.data(), sums.data());
    EXPECT_EQ(FirstDifference(dx.values(), ToDoubles(expected), 0), "") << Activation_Name(kind);
    EXPECT_EQ(FirstDifference(sums.values(), ColumnSums(300, 13, expected), 1e-5), "") << Activation_Name(kind);
  }
}

TEST(BiasGradientTest, SumsRowsInBlocksOf256InOrder) {
  ComputeContext compute(1);
  const std::vector<float> dy = RandomFloats(600 * 3, 1);
  ResultArray dx(600 * 3);
  ResultArray sums(3);
  BiasGradient().Compute(&compute, {config::v1::NONE}, 600, 3, dy.data(), dy.data(), dx.data(), sums.data());
  for (int c = 0; c < 3; ++c) {
    float blocks[3] = {};
    for (int row = 0; row < 600; ++row) blocks[row / 256] += dy[row * 3 + c];
    EXPECT_EQ(sums.values()[c], (blocks[0] + blocks[1]) + blocks[2]);
  }
}

TEST(BiasGradientTest, TheGradientMayBeReplaced) {
  ComputeContext compute(1);
  const std::vector<float> value = RandomFloats(300 * 11, 1);
  std::vector<float> gradient = RandomIntegers(300 * 11, 2);
  std::vector<float> expected(gradient.size());
  ActivationGradient({config::v1::LEAKY_RELU}, gradient.size(), value.data(), gradient.data(), expected.data());
  ResultArray sums(11);
  BiasGradient().Compute(&compute, {config::v1::LEAKY_RELU}, 300, 11, value.data(), gradient.data(), gradient.data(),
                         sums.data());
  EXPECT_EQ(gradient, expected);
  EXPECT_EQ(FirstDifference(sums.values(), ColumnSums(300, 11, expected), 1e-5), "");
}

TEST(BiasGradientTest, WithoutABiasItActivatesAlone) {
  ComputeContext compute(1);
  const std::vector<float> value = RandomFloats(300 * 11, 1);
  const std::vector<float> dy = RandomFloats(300 * 11, 2);
  BiasGradient bias_gradient;
  ResultArray relu(300 * 11);
  bias_gradient.Compute(&compute, {config::v1::RELU}, 300, 11, value.data(), dy.data(), relu.data(), nullptr);
  for (int64_t i = 0; i < 300 * 11; ++i) ASSERT_EQ(relu.values()[i], value[i] > 0 ? dy[i] : 0) << i;
  ResultArray copy(300 * 11);
  bias_gradient.Compute(&compute, {config::v1::NONE}, 300, 11, value.data(), dy.data(), copy.data(), nullptr);
  EXPECT_EQ(FirstDifference(copy.values(), ToDoubles(dy), 0), "");
  EXPECT_TRUE(relu.borders_intact() && copy.borders_intact());
}

TEST(BiasGradientTest, ANotANumberStaysInItsColumn) {
  ComputeContext compute(1);
  std::vector<float> dy(300 * 9, 1.0f);
  dy[280 * 9 + 8] = std::numeric_limits<float>::quiet_NaN();
  ResultArray sums(9);
  BiasGradient().Compute(&compute, {config::v1::NONE}, 300, 9, dy.data(), dy.data(), dy.data(), sums.data());
  for (int c = 0; c < 8; ++c) EXPECT_EQ(sums.values()[c], 300);
  EXPECT_TRUE(std::isnan(sums.values()[8]));
}

TEST(BiasGradientTest, OneThreadAndThreeGiveTheSameBits) {
  const std::vector<float> value = RandomFloats(1500 * 37, 1);
  const std::vector<float> dy = RandomFloats(1500 * 37, 2);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    ComputeContext compute(threads);
    std::vector<float> result(1500 * 37 + 37);
    BiasGradient().Compute(&compute, {config::v1::TANH}, 1500, 37, value.data(), dy.data(), result.data(),
                           result.data() + 1500 * 37);
    results.push_back(result);
  }
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace lockstep

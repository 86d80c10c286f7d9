#include "lockstep/worker/nn/compute/column_moments.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

void ExpectMoments(int64_t rows, int64_t columns) {
  ComputeContext compute(1);
  std::vector<float> x = RandomFloats(rows * columns, 1);
  for (int64_t i = 0; i < rows * columns; ++i) x[i] += static_cast<float>(i % columns);
  std::vector<double> means(columns);
  std::vector<double> variances(columns);
  for (int64_t i = 0; i < rows * columns; ++i) means[i % columns] += x[i] / static_cast<double>(rows);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double distance = x[i] - means[i % columns];
    variances[i % columns] += distance * distance / static_cast<double>(rows);
  }
  ResultArray mean(columns);
  ResultArray variance(columns);
  ColumnMoments().Compute(&compute, rows, columns, x.data(), mean.data(), variance.data());
  EXPECT_EQ(FirstDifference(mean.values(), means, 1e-6), "") << rows << " x " << columns;
  EXPECT_EQ(FirstDifference(variance.values(), variances, 1e-5), "") << rows << " x " << columns;
  EXPECT_TRUE(mean.borders_intact() && variance.borders_intact()) << rows << " x " << columns;
}

TEST(ColumnMomentsTest, MatchEachColumn) {
  for (const int64_t rows : {1, 2, 255, 256, 257, 512, 600}) {
    for (const int64_t columns : {1, 2, 7, 8, 9, 31, 32, 33, 43}) ExpectMoments(rows, columns);
  }
}

TEST(ColumnMomentsTest, ADistantMeanDoesNotCancelTheVariance) {
  ComputeContext compute(1);
  std::vector<float> x;
  for (int i = 0; i < 600; ++i) x.push_back(i % 2 == 0 ? 9999.0f : 10001.0f);
  float mean, variance;
  ColumnMoments().Compute(&compute, 600, 1, x.data(), &mean, &variance);
  EXPECT_EQ(mean, 10000);
  EXPECT_EQ(variance, 1);
}

TEST(ColumnMomentsTest, AShorterMatrixIsComputedAlone) {
  ComputeContext compute(1);
  ColumnMoments moments;
  const std::vector<float> x = RandomFloats(600 * 5, 1);
  float mean[5], variance[5], again[5];
  moments.Compute(&compute, 1, 5, x.data(), mean, variance);
  for (const float v : variance) EXPECT_EQ(v, 0);
  moments.Compute(&compute, 600, 5, x.data(), again, variance);
  moments.Compute(&compute, 1, 5, x.data(), again, variance);
  for (int c = 0; c < 5; ++c) EXPECT_EQ(again[c], mean[c]);
}

TEST(ColumnMomentsTest, ANotANumberStaysInItsColumn) {
  ComputeContext compute(1);
  std::vector<float> x(300 * 9, 1.0f);
  x[270 * 9 + 8] = std::numeric_limits<float>::quiet_NaN();
  float mean[9], variance[9];
  ColumnMoments().Compute(&compute, 300, 9, x.data(), mean, variance);
  for (int c = 0; c < 9; ++c) {
    EXPECT_EQ(std::isnan(mean[c]), c == 8);
    EXPECT_EQ(std::isnan(variance[c]), c == 8);
  }
}

TEST(ColumnMomentsTest, OneThreadAndThreeGiveTheSameBits) {
  const std::vector<float> x = RandomFloats(1500 * 13, 1);
  float results[2][26];
  for (const int i : {0, 1}) {
    ComputeContext compute(i == 0 ? 1 : 3);
    ColumnMoments().Compute(&compute, 1500, 13, x.data(), results[i], results[i] + 13);
  }
  EXPECT_EQ(std::memcmp(results[0], results[1], sizeof(results[0])), 0);
}

}  // namespace
}  // namespace lockstep

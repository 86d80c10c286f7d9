#include "lockstep/worker/data/permutation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

std::vector<int64_t> Order(int64_t n, uint64_t seed, int64_t epoch) {
  const Permutation permutation(n, seed, epoch);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) order.push_back(permutation.At(i));
  return order;
}

TEST(PermutationTest, IsABijectionForEverySize) {
  std::vector<int64_t> sizes(130);
  std::iota(sizes.begin(), sizes.end(), 1);
  for (const int64_t n : {255, 256, 257, 1000, 4095, 4097, 60000}) sizes.push_back(n);
  for (const int64_t n : sizes) {
    std::vector<int64_t> order = Order(n, 7, 3);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(order[i], i) << "n = " << n;
  }
}

TEST(PermutationTest, StaysInRangeForHugeSizes) {
  const int64_t n = (int64_t{1} << 62) - 3;
  const Permutation permutation(n, 1, 1);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t value = permutation.At(n - 1 - i);
    EXPECT_GE(value, 0);
    EXPECT_LT(value, n);
    EXPECT_TRUE(seen.insert(value).second);
  }
}

TEST(PermutationTest, DiffersBetweenEpochsAndSeeds) {
  std::set<std::vector<int64_t>> orders;
  for (int64_t epoch = 0; epoch < 50; ++epoch) orders.insert(Order(100, 1, epoch));
  for (uint64_t seed = 2; seed < 52; ++seed) orders.insert(Order(100, seed, 0));
  EXPECT_EQ(orders.size(), 100);
}

TEST(PermutationTest, IsTheSameInEveryRelease) {
  EXPECT_EQ(Order(8, 42, 0), (std::vector<int64_t>{0, 1, 5, 6, 3, 4, 2, 7}));
}

// Every example appears at every position equally often. Uses a chi-squared test over 10 x 10 cells.
TEST(PermutationTest, SpreadsEveryExampleOverAllPlaces) {
  constexpr int kEpochs = 20000;
  int count[10][10] = {};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation permutation(10, 5, epoch);
    for (int i = 0; i < 10; ++i) ++count[i][permutation.At(i)];
  }
  double chi2 = 0;
  for (const auto& row : count) {
    for (const int cell : row) chi2 += std::pow(cell - kEpochs / 10.0, 2) / (kEpochs / 10.0);
  }
  // 81 degrees of freedom: mean 81, standard deviation 12.7.
  EXPECT_LT(chi2, 81 + 5 * 12.7);
}

// Neighbors in the file do not remain neighbors.
TEST(PermutationTest, SeparatesNeighbours) {
  const std::vector<int64_t> order = Order(10000, 9, 1);
  int adjacent = 0;
  for (size_t i = 1; i < order.size(); ++i) adjacent += std::abs(order[i] - order[i - 1]) == 1;
  EXPECT_LT(adjacent, 20);
}

}  // namespace
}  // namespace lockstep

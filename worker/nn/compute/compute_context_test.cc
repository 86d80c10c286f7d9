#include "lockstep/worker/nn/compute/compute_context.h"

#include <atomic>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ComputeContextTest, CallsTheBodyOnceForEachBlock) {
  for (const int threads : {-1, 0, 1, 2, 4}) {
    ComputeContext compute(threads);
    for (const int64_t blocks : {0, 1, 2, 57}) {
      std::vector<std::atomic<int>> calls(blocks);
      compute.ParallelFor(blocks, [&](int64_t block) { ++calls[block]; });
      for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1) << threads << " threads, " << blocks;
    }
  }
}

TEST(ComputeContextTest, RangesAreCutAtMultiplesOfTheGrain) {
  ComputeContext compute(1);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  const auto record = [&](int64_t begin, int64_t end) { ranges.emplace_back(begin, end); };
  compute.ParallelRanges(10, 4, record);
  EXPECT_EQ(ranges, (std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {4, 8}, {8, 10}}));
  ranges.clear();
  compute.ParallelRanges(8, 4, record);
  EXPECT_EQ(ranges, (std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {4, 8}}));
  ranges.clear();
  compute.ParallelRanges(3, 100, record);
  EXPECT_EQ(ranges, (std::vector<std::pair<int64_t, int64_t>>{{0, 3}}));
  ranges.clear();
  compute.ParallelRanges(0, 4, record);
  EXPECT_TRUE(ranges.empty());
}

}  // namespace
}  // namespace lockstep

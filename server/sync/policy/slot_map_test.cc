#include "lockstep/server/sync/policy/slot_map.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"

namespace lockstep {
namespace {

TEST(SlotMapTest, FindsTheFirstFreeBlockCutAtTheEnd) {
  SlotMap map(7);
  EXPECT_EQ(map.FindFree(8), (SlotBlock{0, 7}));
  map.CountCopies({0, 1}, 1);
  EXPECT_FALSE(map.FindFree(8));
  EXPECT_EQ(map.FindFree(4), (SlotBlock{4, 3}));
  EXPECT_EQ(map.FindFree(2), (SlotBlock{2, 2}));
  EXPECT_EQ(map.FindFree(1), (SlotBlock{1, 1}));
  map.Cover({4, 3});
  EXPECT_FALSE(map.FindFree(4));
  map.Cover({0, 4});
  EXPECT_FALSE(map.AnyFree()) << "what lies beyond the last slot is no slot";
  EXPECT_TRUE(map.IsCovered({0, 7}));
}

TEST(SlotMapTest, ASlotIsFreeWhenItsLastCopyHasEnded) {
  SlotMap map(2);
  map.CountCopies({0, 2}, 1);
  map.CountCopies({0, 1}, 1);
  map.CountCopies({0, 2}, -1);
  EXPECT_FALSE(map.IsFree({0, 1}));
  EXPECT_TRUE(map.IsFree({1, 1}));
  map.CountCopies({0, 1}, -1);
  EXPECT_TRUE(map.IsFree({0, 2}));
  map.Cover({1, 1});
  EXPECT_FALSE(map.IsFree({0, 2}));
  EXPECT_FALSE(map.IsCovered({0, 2}));
  map.Clear();
  EXPECT_TRUE(map.IsFree({0, 2}));
}

// A separate slot is assigned only as a block of its own, never as part of a larger one.
TEST(SlotMapTest, ASeparateSlotIsFreeByItself) {
  SlotMap map(7);
  map.Separate(5);
  EXPECT_FALSE(map.FindFree(8));
  EXPECT_EQ(map.FindFree(4), (SlotBlock{0, 4}));
  map.CountCopies({0, 4}, 1);
  EXPECT_EQ(map.FindFree(2), (SlotBlock{6, 1})) << "cut at the end";
  EXPECT_FALSE(map.IsFree({4, 2}));
  EXPECT_TRUE(map.IsFree({5, 1}));
  map.Cover({4, 1});
  EXPECT_EQ(map.FindFree(1), (SlotBlock{5, 1}));
  map.Clear();
  EXPECT_EQ(map.FindFree(8), (SlotBlock{0, 7}));
}

TEST(SlotMapTest, AgreesWithALinearSearch) {
  const Philox random(1, StableHash("slot map"));
  uint64_t draws = 0;
  const auto draw = [&](uint64_t below) { return static_cast<int64_t>(random.At(draws++)[0] % below); };
  for (const int64_t slots : {1, 2, 5, 8, 13, 16, 31}) {
    SlotMap map(slots);
    std::vector<bool> covered(slots, false);
    std::vector<int> copies(slots, 0);
    std::vector<SlotBlock> leased;
    const auto free = [&](const SlotBlock& block) {
      for (int64_t slot = block.first; slot < block.end(); ++slot) {
        if (covered[slot] || copies[slot] > 0) return false;
      }
      return true;
    };
    for (int event = 0; event < 500; ++event) {
      const int64_t size = int64_t{1} << draw(5);
      if (size >= 2 * slots) continue;
      const int64_t first = draw(slots) / size * size;
      const SlotBlock block{first, std::min(size, slots - first)};
      switch (draw(4)) {
        case 0:
          if (draw(4) == 0) map.Cover(block), std::fill_n(covered.begin() + first, block.count, true);
          break;
        case 1:
          if (leased.empty()) break;
          map.CountCopies(leased.back(), -1);
          for (int64_t slot = leased.back().first; slot < leased.back().end(); ++slot) --copies[slot];
          leased.pop_back();
          break;
        default:
          map.CountCopies(block, 1);
          for (int64_t slot = block.first; slot < block.end(); ++slot) ++copies[slot];
          leased.push_back(block);
      }
      EXPECT_EQ(map.IsFree(block), free(block));
      absl::optional<SlotBlock> expected;
      for (int64_t at = 0; at < slots && !expected; at += size) {
        const SlotBlock candidate{at, std::min(size, slots - at)};
        if (free(candidate)) expected = candidate;
      }
      EXPECT_EQ(map.FindFree(size), expected);
      if (event % 50 == 49) {
        map.Clear();
        covered.assign(slots, false);
        copies.assign(slots, 0);
        leased.clear();
      }
    }
  }
}

}  // namespace
}  // namespace lockstep

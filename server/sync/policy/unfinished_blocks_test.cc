#include "gtest/gtest.h"
#include "lockstep/server/sync/policy/slot_map.h"

namespace lockstep {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
constexpr absl::Duration kSecond = absl::Seconds(1);
const UnfinishedBlocks::SlowAfter kNever{};

TEST(UnfinishedBlocksTest, BacksUpTheOldestSingleCopyFirst) {
  UnfinishedBlocks blocks;
  EXPECT_FALSE(blocks.Choose(/*single=*/true, kStart, kNever));
  blocks.Add({2, 1}, kStart + kSecond);
  blocks.Add({0, 2}, kStart + 2 * kSecond);
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{2, 1}));
  EXPECT_FALSE(blocks.Choose(false, kStart + absl::Hours(1), kNever)) << "nobody knows yet what is slow";
  blocks.Add({2, 1}, kStart + 3 * kSecond);
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{0, 2}));
  blocks.Remove({2, 1}, kStart + kSecond);
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{0, 2})) << "the copy that is left is newer";
  blocks.Remove({0, 2}, kStart + 2 * kSecond);
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{2, 1}));
  blocks.Clear();
  EXPECT_FALSE(blocks.AnyDue(kStart, kNever));
}

TEST(UnfinishedBlocksTest, RemovesNoCopyButTheOneThatWasAdded) {
  UnfinishedBlocks blocks;
  blocks.Add({0, 1}, kStart);
  blocks.Remove({0, 1}, kStart + 2 * kSecond);  // it was covered, and the block is computed again
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{0, 1}));
  blocks.Add({0, 1}, kStart + kSecond);
  blocks.Remove({0, 1}, kStart + 2 * kSecond);
  EXPECT_FALSE(blocks.Choose(true, kStart, kNever)) << "both copies are there";
  blocks.Remove({0, 1}, kStart + kSecond);
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{0, 1}));
}

TEST(UnfinishedBlocksTest, SlownessDependsOnNewestCopyAndSlots) {
  UnfinishedBlocks blocks;
  blocks.Add({0, 2}, kStart);
  blocks.Add({2, 1}, kStart);
  for (const SlotBlock& block : {SlotBlock{0, 2}, SlotBlock{2, 1}}) blocks.Add(block, kStart + kSecond);
  EXPECT_FALSE(blocks.AnyDue(kStart + 3 * kSecond, {absl::ZeroDuration(), 2 * kSecond}));
  EXPECT_EQ(blocks.Choose(false, kStart + 3.1 * kSecond, {absl::ZeroDuration(), 2 * kSecond}), (SlotBlock{2, 1}));
  EXPECT_EQ(blocks.Choose(false, kStart + 5.1 * kSecond, {absl::ZeroDuration(), 2 * kSecond}), (SlotBlock{0, 2}))
      << "both are slow now";
}

TEST(UnfinishedBlocksTest, ABlockMayBeSlowHoweverManySlotsItHas) {
  UnfinishedBlocks blocks;
  blocks.Add({0, 2}, kStart);
  EXPECT_FALSE(blocks.Choose(false, kStart + 3 * kSecond, {3 * kSecond}));
  EXPECT_EQ(blocks.Choose(false, kStart + 3.1 * kSecond, {3 * kSecond}), (SlotBlock{0, 2}));
}

TEST(UnfinishedBlocksTest, ACoveredBlockIsFinished) {
  SlotMap slots(5);
  UnfinishedBlocks blocks;
  for (const SlotBlock& block : {SlotBlock{0, 4}, SlotBlock{0, 2}, SlotBlock{2, 1}, SlotBlock{4, 1}, SlotBlock{0, 5}}) {
    blocks.Add(block, kStart);
  }
  const auto cover = [&](const SlotBlock& block) {
    slots.Cover(block);
    blocks.OnCovered(block, slots);
  };
  cover({2, 2});
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{0, 2})) << "slot 2 lay inside";
  blocks.Remove({2, 1}, kStart);  // its worker is gone
  cover({0, 2});
  EXPECT_EQ(blocks.Choose(true, kStart, kNever), (SlotBlock{0, 5})) << "so does [0,4), which is covered by two";
  cover({4, 1});
  EXPECT_FALSE(blocks.AnyDue(kStart + absl::Hours(1), {absl::ZeroDuration(), kSecond}));
}

}  // namespace
}  // namespace lockstep

#include <algorithm>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/base/philox.h"
#include "lockstep/common/tensor/rounding.h"
#include "lockstep/server/ps/contribution_set.h"

namespace lockstep {
namespace {

constexpr int64_t kElements = 37;

std::vector<float> Gradient(int64_t slot) {
  std::vector<float> gradient(kElements);
  Philox(7, static_cast<uint64_t>(slot)).FillNormal(absl::MakeSpan(gradient));
  return gradient;
}

// Computes the sum over slots [begin, begin + size), cut off at `slots`, directly from its definition.
std::vector<float> TreeSum(int64_t begin, int64_t size, int64_t slots, v1::DataType type = v1::DT_FLOAT) {
  std::vector<float> left = size == 1 ? Gradient(begin) : TreeSum(begin, size / 2, slots, type);
  if (size > 1 && begin + size / 2 >= slots) return left;
  if (size > 1) {
    const std::vector<float> right = TreeSum(begin + size / 2, size / 2, slots, type);
    for (size_t i = 0; i < left.size(); ++i) left[i] = left[i] + right[i];
  }
  RoundTo(type, kElements, left.data());
  return left;
}

int64_t CeilPower(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

std::vector<float> BlockSum(const SlotBlock& block, int64_t slots) {
  return TreeSum(block.first, CeilPower(block.count), slots);
}

bool SameBits(const float* sum, const std::vector<float>& expected) {
  return std::memcmp(sum, expected.data(), expected.size() * sizeof(float)) == 0;
}

SlotTree::Result AddBlock(SlotTree* tree, const SlotBlock& block, int64_t slots, std::vector<float>* storage) {
  *storage = BlockSum(block, slots);
  return tree->Add(block, FloatChunks(storage->data(), kElements), 0);
}

TEST(SlotTreeTest, TheSumDoesNotDependOnArrivalOrder) {
  for (int64_t slots : {1, 2, 3, 4, 5, 6}) {
    const std::vector<float> expected = BlockSum({0, slots}, slots);
    std::vector<int64_t> order(slots);
    for (int64_t i = 0; i < slots; ++i) order[i] = i;
    do {
      SlotTree tree(slots, kElements, SlotTree::Memory());
      std::vector<float> storage;
      for (int64_t i = 0; i < slots; ++i) {
        const auto result = AddBlock(&tree, {order[i], 1}, slots, &storage);
        if (i + 1 < slots) {
          EXPECT_EQ(result.outcome, SlotTree::Outcome::kAdded);
        } else {
          ASSERT_EQ(result.outcome, SlotTree::Outcome::kComplete);
          EXPECT_TRUE(SameBits(result.sum, expected)) << slots << " slots";
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(SlotTreeTest, BlocksInAnyOrderGiveTheSameBits) {
  for (int64_t slots : {4, 7, 8, 13}) {
    const std::vector<float> expected = BlockSum({0, slots}, slots);
    std::vector<SlotBlock> blocks;
    for (int64_t first = 0; first < slots; ++first) {
      for (int64_t count = 1; first + count <= slots; ++count) {
        if (IsTreeNode({first, count}, slots)) blocks.push_back({first, count});
      }
    }
    for (uint64_t seed = 0; seed < 200; ++seed) {
      std::vector<float> home(kElements);
      SlotTree::Memory memory;
      if (seed % 2 == 0) memory.home = home.data();
      SlotTree tree(slots, kElements, memory);
      std::vector<float> storage;
      SlotTree::Result result;
      for (uint64_t i = 0; result.outcome != SlotTree::Outcome::kComplete; ++i) {
        ASSERT_LT(i, 10000u);
        const SlotBlock block = blocks[Philox(seed, 1).At(i)[0] % blocks.size()];
        result = AddBlock(&tree, block, slots, &storage);
      }
      EXPECT_TRUE(SameBits(result.sum, expected)) << slots << " slots, seed " << seed;
    }
  }
}

// Uses 16-bit numbers in blocks of any size, as they arrive over the wire.
TEST(SlotTreeTest, RoundedSumsDoNotDependOnTheBlocks) {
  for (const v1::DataType type : {v1::DT_BFLOAT16, v1::DT_HALF}) {
    for (int64_t slots : {1, 3, 4, 6, 8}) {
      const std::vector<float> expected = TreeSum(0, CeilPower(slots), slots, type);
      if (slots > 1) {
        EXPECT_FALSE(SameBits(BlockSum({0, slots}, slots).data(), expected)) << "rounding changes something";
      }
      for (uint64_t seed = 0; seed < 100; ++seed) {
        SlotTree tree(slots, kElements, SlotTree::Memory(), type);
        SlotTree::Result result;
        for (uint64_t i = 0; result.outcome != SlotTree::Outcome::kComplete; ++i) {
          ASSERT_LT(i, 10000u);
          const auto random = Philox(seed, 1).At(i);
          const SlotBlock block{random[0] % slots, 1 + random[1] % slots};
          if (!IsTreeNode(block, slots)) continue;
          const std::vector<float> sum = TreeSum(block.first, CeilPower(block.count), slots, type);
          std::vector<uint16_t> numbers(kElements);
          Encode16(type, kElements, sum.data(), numbers.data());
          result = tree.Add(block, FloatChunks(type, numbers.data(), kElements), 0);
        }
        EXPECT_TRUE(SameBits(result.sum, expected)) << slots << " slots, seed " << seed;
      }
    }
  }
}

TEST(SlotTreeTest, ACopyOfACoveredBlockChangesNothing) {
  SlotTree tree(4, kElements, SlotTree::Memory());
  std::vector<float> storage;
  EXPECT_EQ(AddBlock(&tree, {0, 2}, 4, &storage).outcome, SlotTree::Outcome::kAdded);
  const std::vector<float> wrong(kElements, 1e9f);
  EXPECT_EQ(tree.Add({1, 1}, FloatChunks(wrong.data(), kElements), 0).outcome, SlotTree::Outcome::kCovered);
  EXPECT_EQ(tree.Add({0, 2}, FloatChunks(wrong.data(), kElements), 0).outcome, SlotTree::Outcome::kCovered);
  const auto result = AddBlock(&tree, {2, 2}, 4, &storage);
  ASSERT_EQ(result.outcome, SlotTree::Outcome::kComplete);
  EXPECT_TRUE(SameBits(result.sum, BlockSum({0, 4}, 4)));
  EXPECT_EQ(tree.Add({0, 4}, FloatChunks(wrong.data(), kElements), 0).outcome, SlotTree::Outcome::kCovered);
}

TEST(SlotTreeTest, AWholeBlockIsUsedWhereItLies) {
  SlotTree tree(4, kElements, SlotTree::Memory());
  std::vector<float> storage;
  const auto result = AddBlock(&tree, {0, 4}, 4, &storage);
  ASSERT_EQ(result.outcome, SlotTree::Outcome::kComplete);
  EXPECT_EQ(result.sum, storage.data());
}

TEST(SlotTreeTest, GivesPartialSumsBackToThePool) {
  BufferPool pool(kElements * sizeof(float), 8);
  SlotTree::Memory memory;
  memory.pool = &pool;
  SlotTree tree(4, kElements, memory);
  std::vector<float> storage;
  for (const int64_t slot : {0, 2, 1}) AddBlock(&tree, {slot, 1}, 4, &storage);
  EXPECT_EQ(pool.num_spare(), 0u);
  ASSERT_EQ(AddBlock(&tree, {3, 1}, 4, &storage).outcome, SlotTree::Outcome::kComplete);
  tree.ReleaseMemory();
  EXPECT_EQ(pool.num_spare(), 2u);
}

TEST(SlotTreeTest, BuffersGrowByOnePerDoubledSlots) {
  for (const int64_t slots : {1, 2, 4, 8}) {
    BufferPool pool(kElements * sizeof(float), 8);
    std::vector<float> home(kElements);
    SlotTree tree(slots, kElements, {home.data(), &pool});
    std::vector<float> storage;
    for (int64_t slot = 0; slot < slots; ++slot) AddBlock(&tree, {slot, 1}, slots, &storage);
    tree.ReleaseMemory();
    EXPECT_EQ(pool.num_spare(), slots == 8 ? 2u : slots == 4 ? 1u : 0u) << slots << " slots";
  }
}

TEST(SlotTreeTest, ALargerBlockReplacesSmallerInPlace) {
  BufferPool pool(kElements * sizeof(float), 8);
  std::vector<float> home(kElements);
  SlotTree tree(4, kElements, {home.data(), &pool});
  std::vector<float> storage;
  AddBlock(&tree, {0, 1}, 4, &storage);
  EXPECT_TRUE(SameBits(home.data(), BlockSum({0, 1}, 4)));
  AddBlock(&tree, {0, 2}, 4, &storage);
  EXPECT_TRUE(SameBits(home.data(), BlockSum({0, 2}, 4)));
  const auto result = AddBlock(&tree, {2, 2}, 4, &storage);
  ASSERT_EQ(result.outcome, SlotTree::Outcome::kComplete);
  EXPECT_EQ(result.sum, home.data());
  EXPECT_TRUE(SameBits(result.sum, BlockSum({0, 4}, 4)));
  EXPECT_EQ(pool.num_spare(), 0u);
}

}  // namespace
}  // namespace lockstep

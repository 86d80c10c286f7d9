#include "lockstep/common/step/slot_block.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// Collects all nodes of the tree over [begin, begin + size) cut off at `slots`, recursively, with their siblings.
void Walk(int64_t begin, int64_t size, int64_t slots, std::map<std::pair<int64_t, int64_t>, SlotBlock>* siblings) {
  if (size == 1) return;
  const int64_t half = size / 2;
  const int64_t end = std::min(begin + size, slots);
  if (begin + half < end) {
    const SlotBlock left{begin, half};
    const SlotBlock right{begin + half, end - begin - half};
    (*siblings)[{left.first, left.count}] = right;
    (*siblings)[{right.first, right.count}] = left;
    Walk(begin + half, half, slots, siblings);
  }
  Walk(begin, half, slots, siblings);
}

TEST(SlotBlockTest, NodesAndSiblingsFollowTheTree) {
  for (int64_t slots = 1; slots <= 33; ++slots) {
    int64_t size = 1;
    while (size < slots) size *= 2;
    std::map<std::pair<int64_t, int64_t>, SlotBlock> siblings;
    Walk(0, size, slots, &siblings);
    for (int64_t first = 0; first < slots; ++first) {
      for (int64_t count = 1; first + count <= slots; ++count) {
        const SlotBlock block{first, count};
        const bool root = first == 0 && count == slots;
        const auto it = siblings.find({first, count});
        EXPECT_EQ(IsTreeNode(block, slots), root || it != siblings.end()) << block.ToString() << " of " << slots;
        if (!IsTreeNode(block, slots)) continue;
        const auto sibling = SiblingOf(block, slots);
        ASSERT_EQ(sibling.has_value(), !root) << block.ToString() << " of " << slots;
        if (sibling) {
          EXPECT_EQ(*sibling, it->second) << block.ToString() << " of " << slots;
          EXPECT_TRUE(IsTreeNode(Join(block, *sibling), slots));
        }
      }
    }
  }
}

TEST(SlotBlockTest, RefusesBlocksOutsideTheSlots) {
  EXPECT_FALSE(IsTreeNode({-1, 1}, 4));
  EXPECT_FALSE(IsTreeNode({0, 0}, 4));
  EXPECT_FALSE(IsTreeNode({4, 1}, 4));
  EXPECT_FALSE(IsTreeNode({0, 5}, 4));
  EXPECT_FALSE(IsTreeNode({1, int64_t{1} << 62}, 4));
}

}  // namespace
}  // namespace lockstep

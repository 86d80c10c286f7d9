#ifndef LOCKSTEP_COMMON_STEP_SLOT_BLOCK_H_
#define LOCKSTEP_COMMON_STEP_SLOT_BLOCK_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"

namespace lockstep {

// An aligned block of a step's slots: [k*2^j, (k+1)*2^j) cut off at R, the number of slots. Blocks are the nodes of the
// fixed binary tree along which gradients are summed (docs/sync.md). A value type.
struct SlotBlock {
  int64_t first = 0;
  int64_t count = 0;

  // Wraps around if the block cannot be a node.
  int64_t end() const { return static_cast<int64_t>(static_cast<uint64_t>(first) + static_cast<uint64_t>(count)); }
  bool Contains(const SlotBlock& other) const { return first <= other.first && other.end() <= end(); }
  // "slots [4,6)"
  std::string ToString() const;

  friend bool operator==(const SlotBlock& a, const SlotBlock& b) { return a.first == b.first && a.count == b.count; }
  friend bool operator!=(const SlotBlock& a, const SlotBlock& b) { return !(a == b); }
};

// Returns a text such as "slots [4,6) of step 17".
std::string DescribeBlock(int64_t step, const SlotBlock& block);

// Returns true if `block` is a node of the tree over `slots` slots.
bool IsTreeNode(const SlotBlock& block, int64_t slots);

// Returns the other child of the node's parent, or nullopt for the root. `block` must be a node. The parent is the
// union of both children.
absl::optional<SlotBlock> SiblingOf(const SlotBlock& block, int64_t slots);

// Returns the union of a node and its sibling.
SlotBlock Join(const SlotBlock& a, const SlotBlock& b);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_SLOT_BLOCK_H_

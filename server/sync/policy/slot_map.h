#ifndef LOCKSTEP_SERVER_SYNC_POLICY_SLOT_MAP_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_SLOT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"

namespace lockstep {

// Which slots of a step are free, being computed, or covered. All blocks are nodes of the tree over the slots. Finding
// a free block costs O(log R); marking one costs that for each of its slots. Pure; not thread-safe.
class SlotMap {
 public:
  explicit SlotMap(int64_t slots);

  // All slots become free, and none is separate.
  void Clear();
  // No free block of several slots has this one.
  void Separate(int64_t slot);
  // A worker begins to compute the block (`by` 1), or no longer does (-1).
  void CountCopies(const SlotBlock& block, int by);
  void Cover(const SlotBlock& block);

  int64_t slots() const { return slots_; }
  // A free slot is neither covered nor being computed.
  bool AnyFree() const;
  // Of all slots of the block.
  bool IsFree(const SlotBlock& block) const;
  bool IsCovered(const SlotBlock& block) const;
  // The first slot that is not covered.
  absl::optional<int64_t> FirstUncovered() const;
  // The first free block of `size` slots, a power of two, cut at R.
  absl::optional<SlotBlock> FindFree(int64_t size) const;

 private:
  struct Slot {
    bool covered = false;
    bool separate = false;
    int copies = 0;
  };
  struct Node {
    // Slots of the largest free node below, or of this one itself. What lies beyond R counts as free, and as covered.
    int64_t largest_free = 0;
    int64_t uncovered = 0;
    bool separate = false;  // a slot below is
  };
  // The smallest node that holds the block.
  size_t IndexOf(const SlotBlock& block, int64_t* width) const;
  // After a change of a slot.
  void Update(int64_t slot);
  void UpdateNode(size_t node, int64_t width);
  void UpdateLeaf(int64_t slot);

  const int64_t slots_;
  const int64_t width_;  // the least power of two that is at least slots_
  std::vector<Slot> state_;
  std::vector<Node> nodes_;  // the root is 1, the children of n are 2n and 2n + 1
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_MAP_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_SLOT_MAP_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_SLOT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/server/sync/workers/flat_set.h"

namespace lockstep {

// The states of a step's slots: free, being computed, or covered. All blocks are nodes of the slot tree. Finding a free
// block costs O(log R); marking a block costs that much for each of its slots. Pure; not thread-safe.
class SlotMap {
 public:
  explicit SlotMap(int64_t slots);

  // Makes all slots free and none separate.
  void Clear();
  // Excludes this slot from free blocks of more than one slot.
  void Separate(int64_t slot);
  // Counts a worker that begins to compute the block (`by` = 1) or no longer computes it (-1).
  void CountCopies(const SlotBlock& block, int by);
  void Cover(const SlotBlock& block);

  int64_t slots() const { return slots_; }
  // A free slot is neither covered nor being computed.
  bool AnyFree() const;
  // Return true if all slots of the block are free (IsFree) or covered (IsCovered).
  bool IsFree(const SlotBlock& block) const;
  bool IsCovered(const SlotBlock& block) const;
  // Returns the first slot that is not covered.
  absl::optional<int64_t> FirstUncovered() const;
  // Returns the first free block of `size` slots, cut off at R. `size` must be a power of two.
  absl::optional<SlotBlock> FindFree(int64_t size) const;

 private:
  struct Slot {
    bool covered = false;
    bool separate = false;
    int copies = 0;
  };
  struct Node {
    // Number of slots of the largest free node at or below this one. Slots beyond R count as both free and covered.
    int64_t largest_free = 0;
    int64_t uncovered = 0;
    bool separate = false;  // some slot below is separate
  };
  // Returns the smallest node that contains the block, and sets `width` to the number of slots of that node.
  size_t IndexOf(const SlotBlock& block, int64_t* width) const;
  // Updates the tree after a slot has changed.
  void Update(int64_t slot);
  void UpdateNode(size_t node, int64_t width);
  void UpdateLeaf(int64_t slot);

  const int64_t slots_;
  const int64_t width_;  // the least power of two that is at least slots_
  std::vector<Slot> state_;
  std::vector<Node> nodes_;  // the root is 1, the children of n are 2n and 2n + 1
};

// The blocks that are being computed and are not covered yet. Chooses the block that most needs another copy (a
// backup): a block with a single copy that was started a moment ago or should have finished already, or a block whose
// newest copy is slow. Every call costs O(log R) for each copy involved, plus moving elements in a FlatSet. Pure; not
// thread-safe.
class UnfinishedBlocks {
 public:
  // The age after which a copy is slow: `block`, plus `slot` for each of its slots. By default, no copy is slow.
  struct SlowAfter {
    absl::Duration block = absl::InfiniteDuration();
    absl::Duration slot = absl::ZeroDuration();
    // The usual time for a slot; infinite until it is known.
    absl::Duration usual_slot = absl::InfiniteDuration();
  };

  // Add records a copy that begins, and Remove one that ends without covering its block.
  void Add(const SlotBlock& block, absl::Time issued);
  void Remove(const SlotBlock& block, absl::Time issued);
  // Drops the blocks that are covered in `slots`, where `block` has just been covered.
  void OnCovered(const SlotBlock& block, const SlotMap& slots);
  void Clear();

  // Returns the time at which the newest copy of the block was started, or nullopt if there is none.
  absl::optional<absl::Time> NewestCopy(const SlotBlock& block) const;
  // Returns true if Choose with `single` would return something.
  bool AnyDue(absl::Time now, const SlowAfter& slow_after) const;
  // Returns the block whose first copy is oldest, among those that are slow and, if `single`, those with a single copy
  // that is new or overdue. A copy that begins when the first one is half done would end too late, and would keep its
  // worker from the next step.
  absl::optional<SlotBlock> Choose(bool single, absl::Time now, const SlowAfter& slow_after) const;

 private:
  using Key = std::pair<int64_t, int64_t>;  // first slot, count
  using Order = FlatSet<std::pair<absl::Time, Key>>;
  using Copies = absl::InlinedVector<absl::Time, 2>;  // when they were issued, in order
  using Blocks = std::map<Key, Copies>;

  absl::optional<std::pair<absl::Time, Key>> ChooseSingle(absl::Time now, absl::Duration usual_slot) const;
  void Index(const Blocks::value_type& block);
  void Unindex(const Blocks::value_type& block);
  Blocks::iterator FindOrAdd(const Key& key);
  void Erase(Blocks::iterator block);

  Blocks blocks_;
  // An erased node to reuse.
  Blocks::node_type spare_;
  // Blocks with a single copy, by the time when that copy was issued.
  Order single_;
  // For each number of slots, the blocks of that size by the time of their newest copy. The sizes are kept apart
  // because the age at which a copy is slow depends on them.
  std::map<int64_t, Order> newest_;  // some may be empty
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_MAP_H_

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

// The blocks that are being computed and not covered, and which of them deserves one more copy (a backup): one of which
// there is a single copy, which was begun a moment ago or should have ended, or one whose newest copy is slow. Every
// call costs O(log R) for each copy that it is about, and a move in memory (FlatSet). Pure; not thread-safe.
class UnfinishedBlocks {
 public:
  // When a copy is slow: when it is older than `block` and `slot` for each of its slots. Without values: never.
  struct SlowAfter {
    absl::Duration block = absl::InfiniteDuration();
    absl::Duration slot = absl::ZeroDuration();
    // How long a slot usually takes; infinite as long as that is not known.
    absl::Duration usual_slot = absl::InfiniteDuration();
  };

  // A copy is begun, or ends without covering its block.
  void Add(const SlotBlock& block, absl::Time issued);
  void Remove(const SlotBlock& block, absl::Time issued);
  // Drops what `slots`, in which `block` has just been covered, says is covered.
  void OnCovered(const SlotBlock& block, const SlotMap& slots);
  void Clear();

  // Returns when the newest copy of the block was begun; nullopt if there is none.
  absl::optional<absl::Time> NewestCopy(const SlotBlock& block) const;
  // Whether Choose, with `single`, would return something.
  bool AnyDue(absl::Time now, const SlowAfter& slow_after) const;
  // The block whose first copy is oldest, of those that are slow, and, with `single`, of those with a single copy. A
  // copy that begins when the first one is half done would end too late, and keep its worker from the next step.
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
  // One that was erased, to be used again.
  Blocks::node_type spare_;
  // By the time of the only copy.
  Order single_;
  // By the time of the newest copy; for each number of slots, since what is slow depends on it.
  std::map<int64_t, Order> newest_;  // some may be empty
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_MAP_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_UNFINISHED_BLOCKS_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_UNFINISHED_BLOCKS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/server/sync/policy/slot_map.h"
#include "lockstep/server/sync/workers/flat_set.h"

namespace lockstep {

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

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_UNFINISHED_BLOCKS_H_

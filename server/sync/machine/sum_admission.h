#ifndef LOCKSTEP_SERVER_SYNC_MACHINE_SUM_ADMISSION_H_
#define LOCKSTEP_SERVER_SYNC_MACHINE_SUM_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/server/sync/workers/flat_set.h"

namespace lockstep {

// Decides which contributions to a step may be summed now, so that the partial sums of its tree (SlotTree) stay within
// a bound for any order of arrival. An admitted contribution arrives piece by piece, so at any moment each segment may
// or may not include it, even after its sender is gone. Therefore, the state of the tree consists of the blocks that
// are whole and the blocks that may be present. The state is safe if the bound holds both for these blocks, in the
// worst case for every segment, and while the remaining slots are summed one after the other, in order. A contribution
// is admitted if the state stays safe. A contribution to the first slot that is not whole, or one that completes a pair
// with a whole block, is always admitted, because it does not affect safety. Admission costs O(log R). Pure; not
// thread-safe.
class SumAdmission {
 public:
  enum class Verdict { kSum, kDrop, kWait };

  // `bound` must be at least LeastPartialSums(slots).
  SumAdmission(int64_t slots, int64_t bound);

  // Starts over with empty sums and without waiting contributions. Returns the sessions that were waiting; their
  // contributions to the old sums are unwanted.
  std::vector<uint64_t> Restart();

  // Returns the verdict on the contribution of `session`, which must hold a token for `block`. A verdict of kSum or
  // kDrop does not change until End.
  Verdict Ask(uint64_t session, const SlotBlock& block);
  // Ends the contribution, because it is whole (`covers`), was aborted, or has lost its worker.
  void End(uint64_t session, const SlotBlock& block, bool covers);
  // Admits the waiting contributions that can be summed now, and returns their sessions.
  std::vector<uint64_t> Admit();
  // Drops the contribution, which must be waiting, so that its worker can do something else.
  void Drop(uint64_t session);

  bool waits(uint64_t session) const { return HasVerdict(session, Verdict::kWait); }
  bool drops(uint64_t session) const { return HasVerdict(session, Verdict::kDrop); }
  bool any_waiting() const { return !waiting_.empty(); }
  size_t num_waiting() const { return waiting_.size(); }
  // Returns the waiting session whose slots come last. Requires any_waiting().
  uint64_t last_waiting() const { return std::get<2>(*(waiting_.end() - 1)); }

 private:
  // Bounds on the partial sums at and below a node of the tree. A node is complete when one sum represents all of it.
  struct Node {
    bool begun = false;  // the node itself was admitted
    bool whole = false;  // the node is complete for every segment
    bool may_be_complete = false;
    // Maximum number of partial sums while the node is not complete.
    int64_t most = 0;
    // Maximum number of partial sums if the node's slots are summed in order from now on.
    int64_t most_in_order = 0;
  };
  struct Contribution {
    SlotBlock block;
    Verdict verdict = Verdict::kWait;
  };

  bool HasVerdict(uint64_t session, Verdict verdict) const;
  bool bounded() const { return !nodes_.empty(); }
  // Admits the contribution and returns true if the state stays safe.
  bool TryAdmit(const SlotBlock& block);
  size_t IndexOf(const SlotBlock& block) const;
  // Updates the node and its ancestors after the node itself has changed.
  void Update(size_t node);
  void UpdateNode(size_t node);
  static std::tuple<int64_t, int64_t, uint64_t> OrderOf(uint64_t session, const SlotBlock& block) {
    return {block.first, block.count, session};
  }

  const int64_t slots_;
  const int64_t bound_;
  const int64_t width_;  // the least power of two that is at least slots_
  // The root is node 1, and the children of node n are 2n and 2n + 1. Empty if no order of arrival can exceed the
  // bound.
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint64_t, Contribution> contributions_;  // by session
  FlatSet<std::tuple<int64_t, int64_t, uint64_t>> waiting_;    // first slot, slots, session
  // True if a block has become whole since the last Admit.
  bool room_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_MACHINE_SUM_ADMISSION_H_

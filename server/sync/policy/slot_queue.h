#ifndef LOCKSTEP_SERVER_SYNC_POLICY_SLOT_QUEUE_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_SLOT_QUEUE_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/server/sync/policy/slot_map.h"
#include "lockstep/server/sync/workers/token_leases.h"

namespace lockstep {

// Chooses the slots of the current step to compute next. Slots are free, being computed or covered. The machine keeps
// the leases of those being computed (TokenLeases), and reports when one ends.
//  - If there are fewer workers than slots, a worker may get a larger aligned block.
//  - When a lease ends without a contribution, its slots become free again.
//  - If no slot is free, a worker gets another copy of an unfinished block (a backup): of a block with a single copy if
//    the caller asks for one, or if every copy of the block takes `slow_factor` times as long as others took. Before
//    anything has been measured, that limit is `slow_factor` leases for any number of slots.
// Every call except StartStep and TakeFirstCopy costs O(log R + log N) for each slot that it assigns, frees or covers,
// plus moving elements in memory (UnfinishedBlocks). Pure; not thread-safe.
class SlotQueue {
 public:
  struct Options {
    int64_t slots = 1;  // replicas_to_aggregate
    absl::Duration lease = absl::Seconds(5);
    // A block is assigned again if it takes longer than this many times the usual time for each of its slots. Before
    // the first contribution, the limit is this many leases, so that a worker that hangs while its heartbeats continue
    // does not block the first step forever.
    double slow_factor = 4;
  };

  explicit SlotQueue(const Options& options)
      : options_(options), slots_(options.slots), slow_after_({options.slow_factor * options.lease}) {}

  // Makes all slots free.
  void StartStep();
  // Makes the queue assign the slot as a block of its own in this step.
  void Separate(int64_t slot) { slots_.Separate(slot); }

  // TakeFree and TakeBackup return the block that a worker computes next, or nullopt if there is none. TakeFree returns
  // a block of at most `most` free slots, given that `workers` workers take part. It prefers `preferred`, the worker's
  // last block, to others that are as good, because that block's batches may already be prepared. TakeBackup returns
  // another copy of a slow block or, if `single`, of a block that only one worker is computing.
  absl::optional<SlotBlock> TakeFree(int64_t workers, int64_t most, absl::Time now,
                                     const absl::optional<SlotBlock>& preferred);
  absl::optional<SlotBlock> TakeBackup(bool single, absl::Time now);
  // TakeFirst and TakeFirstCopy do the same for the step's first uncovered slot. TakeFirst returns a free block that
  // begins with this slot. TakeFirstCopy, which costs O(N), returns another copy of the smallest block that contains
  // the slot, if every copy is slow and no contribution of the `leases` on the slot is waiting.
  absl::optional<SlotBlock> TakeFirst(int64_t workers, absl::Time now);
  absl::optional<SlotBlock> TakeFirstCopy(const TokenLeases& leases, absl::Time now);
  // Takes another copy of this block.
  void TakeCopy(const SlotBlock& block, absl::Time now) { Add(block, now); }

  // Returns false if TakeFree and TakeBackup would return nothing for any worker and any number of workers.
  bool AnythingDue(absl::Time now) const;
  bool AnyFree() const { return slots_.AnyFree(); }
  // Returns true if the time of a contribution has been measured.
  bool timed() const { return timed_; }
  // Returns true if TakeBackup would return something.
  bool AnyBackup(bool single, absl::Time now) const;
  // Returns the time after which a block of this many slots is also assigned to another worker.
  absl::Duration SlowAfter(int64_t slots) const { return slow_after_.block + slots * slow_after_.slot; }
  bool IsSlow(const TokenLease& lease, absl::Time now) const {
    return now > lease.issued + SlowAfter(lease.token.block.count);
  }

  // Suspend records that the contribution of the lease has arrived and waits for others, so that it causes no backup of
  // its block. Resume ends the wait.
  void Suspend(const TokenLease& lease) { unfinished_.Remove(lease.token.block, lease.issued); }
  void Resume(const TokenLease& lease);
  // Marks the slots of a contributed block as covered. `lease` is the worker's lease, which ends with this call; null
  // if it has already ended.
  void Cover(const SlotBlock& block, const TokenLease* lease, absl::Time now);
  // Releases the block of a lease that has ended without a contribution.
  void Release(const TokenLease& lease);

 private:
  void Add(const SlotBlock& block, absl::Time now);
  int64_t ShareOf(int64_t workers) const {
    return std::max<int64_t>(1, options_.slots / std::max<int64_t>(1, workers));
  }
  absl::optional<SlotBlock> FreeBlock(int64_t workers, int64_t most, const absl::optional<SlotBlock>& preferred) const;

  const Options options_;
  SlotMap slots_;
  UnfinishedBlocks unfinished_;
  // The usual time for a slot, a moving average over contributions; zero before the first one. Determines slow_after_.
  double usual_slot_seconds_ = 0;
  bool timed_ = false;
  UnfinishedBlocks::SlowAfter slow_after_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_QUEUE_H_

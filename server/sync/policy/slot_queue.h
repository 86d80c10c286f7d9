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

// Which slots of the current step are to be computed next. Slots are free, being computed or covered; the leases of
// those that are being computed are the machine's (TokenLeases), which reports each that ends.
//  - With fewer workers than slots a worker gets a larger aligned block.
//  - When a lease ends, its slots are free again.
//  - With no slot free, a worker gets a second copy of an unfinished block (a backup) when there are
//    more workers than slots, or when every copy of it takes `slow_factor` times as long as others took; before
//    anything was timed, `slow_factor` leases, however many slots it has.
// Every call but StartStep and TakeFirstCopy costs O(log R + log N) for each slot that it gives, frees or covers, and a
// move in memory (UnfinishedBlocks). Pure; not thread-safe.
class SlotQueue {
 public:
  struct Options {
    int64_t slots = 1;  // replicas_to_aggregate
    absl::Duration lease = absl::Seconds(5);
    // A block that took longer than this many times the usual time for each slot is given out again. Nothing is usual
    // before the first contribution; then it is this many leases, so that a worker that hangs while it is heard of
    // does not keep the first step for ever.
    double slow_factor = 4;
  };

  explicit SlotQueue(const Options& options)
      : options_(options), slots_(options.slots), slow_after_({options.slow_factor * options.lease}) {}

  // All slots become free.
  void StartStep();
  // Gives the slot out in a block of its own, in this step.
  void Separate(int64_t slot) { slots_.Separate(slot); }

  // Returns what a worker is to compute from now on, while `workers` take part; nullopt if there is nothing to do: a
  // block of free slots, of `most` at most, and another copy of one that is computed; with `single`, of one that nobody
  // else computes. `preferred`, the block that the worker had last, is taken when it is as good as any: its batches may
  // be prepared.
  absl::optional<SlotBlock> TakeFree(int64_t workers, int64_t most, absl::Time now,
                                     const absl::optional<SlotBlock>& preferred);
  absl::optional<SlotBlock> TakeBackup(bool single, absl::Time now);
  // The same for the step's first slot that is not covered: a free block that begins with it, and another copy of the
  // smallest block with it if every copy is slow and none of `leases` on it waits. O(N).
  absl::optional<SlotBlock> TakeFirst(int64_t workers, absl::Time now);
  absl::optional<SlotBlock> TakeFirstCopy(const TokenLeases& leases, absl::Time now);
  // Another copy of this block.
  void TakeCopy(const SlotBlock& block, absl::Time now) { Add(block, now); }

  // Returns false if TakeFree and TakeBackup would return nothing, whatever the worker and the number of workers.
  bool AnythingDue(absl::Time now) const;
  bool AnyFree() const { return slots_.AnyFree(); }
  // Returns whether TakeBackup would return something.
  bool AnyBackup(bool single, absl::Time now) const;
  // Returns the time after which a block of this many slots is given to another worker as well.
  absl::Duration SlowAfter(int64_t slots) const { return slow_after_.block + slots * slow_after_.slot; }
  bool IsSlow(const TokenLease& lease, absl::Time now) const {
    return now > lease.issued + SlowAfter(lease.token.block.count);
  }

  // The contribution of the lease is there and waits until those of others are: its block is given to nobody else
  // because of it. Resume: it waits no longer.
  void Suspend(const TokenLease& lease) { unfinished_.Remove(lease.token.block, lease.issued); }
  void Resume(const TokenLease& lease);
  // The block was contributed: its slots are covered. `lease`, its worker's, has then ended; null if it ended before.
  void Cover(const SlotBlock& block, const TokenLease* lease, absl::Time now);
  // The lease has ended, and its block was not contributed.
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
  // How long a slot usually takes: a moving average over contributions; zero before the first. And from it:
  double usual_slot_seconds_ = 0;
  UnfinishedBlocks::SlowAfter slow_after_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_QUEUE_H_

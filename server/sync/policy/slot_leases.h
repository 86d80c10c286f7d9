#ifndef LOCKSTEP_SERVER_SYNC_POLICY_SLOT_LEASES_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_SLOT_LEASES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/slot_block.h"
#include "lockstep/server/sync/policy/slot_map.h"
#include "lockstep/server/sync/workers/deadline_queue.h"

namespace lockstep {

// Who computes which slots of the current step: tokens, leased. Pure: no lock, no clock, no I/O. Slots
// are free, leased or covered. A session holds at most one token.
//  - With fewer workers than slots a token names a larger aligned block.
//  - A token whose lease ended, or whose worker left, is void and its slots are free again.
//  - With no slot free, a worker gets a second copy of an unfinished block (a backup) when there are
//    more workers than slots, or when every copy of it takes `slow_factor` times as long as others took; before
//    anything was timed, `slow_factor` leases, however many slots it has.
// Every call but StartStep and Expire costs O(log R + log N) for each slot that it gives, frees or covers, and a move
// in memory (UnfinishedBlocks). Not thread-safe.
class SlotLeases {
 public:
  struct Options {
    int64_t slots = 1;  // replicas_to_aggregate
    absl::Duration lease = absl::Seconds(5);
    // A block that took longer than this many times the usual time for each slot is given out again. Nothing is usual
    // before the first contribution; then it is this many leases, so that a worker that hangs while it is heard of
    // does not keep the first step for ever.
    double slow_factor = 4;
  };
  struct Lease {
    uint64_t session = 0;
    SlotBlock block;
    absl::Time issued;
    absl::Time deadline;
    bool backup = false;
    // Since when the contribution waits for others, if it does (Suspend). Such time does not count as the worker's.
    absl::optional<absl::Time> suspended;
  };

  explicit SlotLeases(const Options& options)
      : options_(options), slots_(options.slots), slow_after_({options.slow_factor * options.lease}) {}

  // All slots become free, all tokens void.
  void StartStep();
  // In this step the slot is leased alone.
  void Separate(int64_t slot) { slots_.Separate(slot); }

  // A token for `session`, which must hold none, while `workers` sessions take part; nullopt when there is nothing to
  // do. `preferred`, the block that the session had last, is taken when it is as good as any: its batches may be
  // prepared.
  absl::optional<SlotBlock> Take(uint64_t session, int64_t workers, absl::Time now,
                                 const absl::optional<SlotBlock>& preferred = absl::nullopt);

  // The two parts of Take: a block of free slots, of `most` at most, and another copy of one that is computed; with
  // `single`, of one that nobody else computes.
  absl::optional<SlotBlock> TakeFree(uint64_t session, int64_t workers, int64_t most, absl::Time now,
                                     const absl::optional<SlotBlock>& preferred);
  absl::optional<SlotBlock> TakeBackup(uint64_t session, bool single, absl::Time now);
  // In place of Take: the step's first slot that is not covered, in a block that is free or of which every copy is
  // slow.
  absl::optional<SlotBlock> TakeFirst(uint64_t session, int64_t workers, absl::Time now);
  // Another copy of this block.
  void TakeCopy(uint64_t session, const SlotBlock& block, absl::Time now);

  // False: Take would return nothing, whatever the session and the number of workers.
  bool AnythingDue(absl::Time now) const;
  bool AnyFree() const { return slots_.AnyFree(); }
  // Whether TakeBackup would return something.
  bool AnyBackup(bool single, absl::Time now) const;
  // How long a block of this many slots is computed before it is given out again.
  absl::Duration SlowAfter(int64_t slots) const { return slow_after_.block + slots * slow_after_.slot; }

  // Moves the deadline. False when the session holds no token.
  bool Renew(uint64_t session, absl::Time now);

  // The contribution of the session's token is there and waits until those of others are: its block is given to nobody
  // else because of it. Resume: it waits no longer. The lease goes on meanwhile.
  void Suspend(uint64_t session, absl::Time now);
  void Resume(uint64_t session, absl::Time now);
  // Some worker computes or contributes, and is not slow.
  bool AnyInTime(absl::Time now) const;

  // The block was contributed: its slots are covered, the session's token is used up.
  void Cover(const SlotBlock& block, uint64_t session, absl::Time now);

  // The session's token, if any, is void.
  void Release(uint64_t session);
  // The same, and the session will have no other.
  void Remove(uint64_t session);

  // Voids the tokens whose deadline is not after `now`; returns them.
  std::vector<Lease> Expire(absl::Time now);

  const Lease* FindLease(uint64_t session) const;
  // Calls `visit` with each.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& entry : leases_) visit(entry.second);
  }
  bool AnyLease() const { return !leases_.empty(); }

 private:
  void Add(uint64_t session, const SlotBlock& block, absl::Time now, bool backup);
  bool IsSlow(const Lease& lease, absl::Time now) const {
    return now > lease.issued + slow_after_.block + slow_after_.slot * lease.block.count;
  }
  int64_t ShareOf(int64_t workers) const {
    return std::max<int64_t>(1, options_.slots / std::max<int64_t>(1, workers));
  }
  absl::optional<SlotBlock> FreeBlock(int64_t workers, int64_t most, const absl::optional<SlotBlock>& preferred) const;

  const Options options_;
  SlotMap slots_;
  absl::flat_hash_map<uint64_t, Lease> leases_;  // by session
  // Of the leases, and of sessions that have none any more.
  DeadlineQueue deadlines_;
  UnfinishedBlocks unfinished_;
  // How long a slot usually takes: a moving average over contributions; zero before the first. And from it:
  double usual_slot_seconds_ = 0;
  UnfinishedBlocks::SlowAfter slow_after_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_SLOT_LEASES_H_

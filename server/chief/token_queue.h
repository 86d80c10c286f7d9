#ifndef LOCKSTEP_SERVER_CHIEF_TOKEN_QUEUE_H_
#define LOCKSTEP_SERVER_CHIEF_TOKEN_QUEUE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/sync/slot_block.h"

namespace lockstep {

// Who computes which slots of the current step: tokens, leased. Pure: no lock, no clock, no I/O. Slots
// are free, leased or covered. A session holds at most one token.
//  - With fewer workers than slots a token names a larger aligned block.
//  - A token whose lease ended, or whose worker left, is void and its slots are free again.
//  - With no slot free, a worker gets a second copy of an unfinished block (a backup) when there are
//    more workers than slots, or when every copy of it takes `slow_factor` times as long as others took.
// Not thread-safe.
class TokenQueue {
 public:
  struct Options {
    int64_t slots = 1;  // replicas_to_aggregate
    absl::Duration lease = absl::Seconds(5);
    // A block that took longer than this many times the usual time for each slot is given out again.
    double slow_factor = 4;
  };
  struct Lease {
    uint64_t session = 0;
    SlotBlock block;
    absl::Time issued;
    absl::Time deadline;
    bool backup = false;
  };

  explicit TokenQueue(const Options& options)
      : options_(options), covered_(options.slots, false), copies_(options.slots, 0), num_free_(options.slots) {}

  // All slots become free, all tokens void.
  void StartStep();

  // A token for `session`, which must hold none, while `workers` sessions take part; nullopt when there is nothing to
  // do. `preferred`, the block that the session had last, is taken when it is as good as any: its batches may be
  // prepared.
  absl::optional<SlotBlock> Take(uint64_t session, int64_t workers, absl::Time now,
                                 const absl::optional<SlotBlock>& preferred = absl::nullopt);

  // False: Take would return nothing, for whomever and however many workers there are. Costs nothing to ask: the work
  // of Take is done once for each time that something was given, came or ended.
  bool AnythingDue(absl::Time now) const;

  // Moves the deadline. False when the session holds no token.
  bool Renew(uint64_t session, absl::Time now);

  // The block was contributed: its slots are covered, the session's token is used up.
  void Cover(const SlotBlock& block, uint64_t session, absl::Time now);

  // The session's token, if any, is void.
  void Release(uint64_t session);

  // Voids the tokens whose deadline is not after `now`; returns them.
  std::vector<Lease> Expire(absl::Time now);

  const Lease* FindLease(uint64_t session) const;
  const std::vector<Lease>& leases() const { return leases_; }

 private:
  bool IsFree(int64_t slot) const { return !covered_[slot] && copies_[slot] == 0; }
  bool IsFree(const SlotBlock& block) const;
  bool IsCovered(const SlotBlock& block) const;
  // The lease begins (`by` 1) or has ended (-1).
  void CountCopies(const SlotBlock& block, int by);
  absl::optional<SlotBlock> FreeBlock(int64_t workers, const absl::optional<SlotBlock>& preferred) const;
  // A block that is being computed and not covered.
  struct Unfinished {
    SlotBlock block;
    int copies = 0;
    absl::Time first_issued;
    // When one more copy may be given out whatever the number of workers: the newest takes too long then.
    absl::Time slow_at;
  };
  // In the order of their leases.
  const std::vector<Unfinished>& unfinished() const;
  absl::optional<SlotBlock> BackupBlock(int64_t workers, absl::Time now) const;

  const Options options_;
  std::vector<bool> covered_;
  // Of each slot: the leases whose block holds it.
  std::vector<int> copies_;
  // Slots that are neither covered nor leased.
  int64_t num_free_;
  std::vector<Lease> leases_;
  // Follows from the above; made anew when it is asked for after a change.
  mutable absl::optional<std::vector<Unfinished>> unfinished_;
  // How long a slot usually takes: a moving average over contributions; zero before the first.
  absl::Duration usual_slot_time_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_TOKEN_QUEUE_H_

#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_TOKEN_LEASES_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_TOKEN_LEASES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/workers/deadline_queue.h"
#include "lockstep/server/sync/workers/worker_state.h"

namespace lockstep {

// A token that a worker holds for a limited time.
struct TokenLease {
  uint64_t session = 0;
  StepToken token;
  absl::Time issued;
  absl::Time deadline;
  bool backup = false;  // another worker computes the same block
  // Time since which the contribution has been waiting for others; nullopt if it is not waiting. The wait does not
  // count against the worker.
  absl::optional<absl::Time> suspended;
};

// The leases of a run's tokens, at most one for each session. A lease ends when its deadline passes, when its token is
// used up, or when its worker is gone; the caller then informs the policy. Every call except Clear and Expire costs
// O(log N), plus moving elements in memory (DeadlineQueue). Pure; not thread-safe.
class TokenLeases {
 public:
  explicit TokenLeases(absl::Duration lease) : lease_(lease) {}

  // Gives this token to the session, which must not hold a lease.
  void Give(uint64_t session, const StepToken& token, bool backup, absl::Time now);
  // Moves the deadline. Returns false if the session holds no lease.
  bool Renew(uint64_t session, absl::Time now);
  // Suspend and Resume record that the contribution to the token waits, or no longer waits, for others. The lease
  // continues. They return the lease, or null if nothing has changed.
  const TokenLease* Suspend(uint64_t session, absl::Time now);
  const TokenLease* Resume(uint64_t session, absl::Time now);
  // Ends the session's lease and returns it, if it holds one.
  absl::optional<TokenLease> Release(uint64_t session);
  // Releases the lease like Release, for a session that will not hold another one.
  absl::optional<TokenLease> Remove(uint64_t session);
  // Ends all leases.
  void Clear() { leases_.clear(); }
  // Ends the leases whose deadline is not after `now`, and returns them, earliest first.
  std::vector<TokenLease> Expire(absl::Time now);

  bool empty() const { return leases_.empty(); }
  // Returns the session's lease, or null. Valid until the next change.
  const TokenLease* Find(uint64_t session) const;
  // Calls `visit` with each lease, in no particular order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& entry : leases_) visit(entry.second);
  }

 private:
  const absl::Duration lease_;
  absl::flat_hash_map<uint64_t, TokenLease> leases_;  // by session
  // The deadlines of the leases, and of sessions that no longer hold one.
  DeadlineQueue deadlines_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_TOKEN_LEASES_H_

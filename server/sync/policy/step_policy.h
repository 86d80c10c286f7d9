#ifndef LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/server/sync/workers/token_leases.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Who computes what, which contributions count, and when a step is over. The machine knows the protocol of each worker,
// keeps the leases of tokens, and leaves all choices to this. `deterministic` gives out each slot of a step until it
// is covered. FIRST_ARRIVALS would give every waiting worker a token that carries the step, take the first R
// contributions and call later ones stale; ASYNC would commit at every contribution. Pure: no lock, no clock, no I/O;
// the time never goes back. Not thread-safe.
class StepPolicy {
 public:
  struct Assignment {
    uint64_t session = 0;
    StepToken token;
    bool backup = false;  // another worker computes the same
  };
  struct Contribution {
    uint64_t session = 0;
    StepToken token;
    bool any_new = false;  // some of its gradients were not summed before
    absl::Duration took;   // since the token was given
  };
  // What a contribution says of the gradients of its token's slot, since the token asked for that.
  struct Digests {
    uint64_t session = 0;
    std::string worker;  // for people
    StepToken token;
    std::vector<uint64_t> digests;  // by trainable variable
  };
  struct Compared {
    // Not OK: the digests are malformed.
    absl::Status status;
    std::vector<std::string> warnings;
    // The run cannot continue: two workers computed something else, and it is to fail then.
    absl::Status failure;
  };

  virtual ~StepPolicy() = default;

  // The worker is there, or has changed.
  virtual void Update(uint64_t session, const WorkerState& worker) = 0;
  // The worker is gone, and its lease, if any, was released before.
  virtual void Remove(uint64_t session) = 0;

  // Tokens for those that wait, in order of preference; the machine gives each of them to its worker with a lease, and
  // calls Update. `leases` are those of the tokens given before.
  using Assignments = absl::InlinedVector<Assignment, 2>;
  virtual Assignments Assign(const TokenLeases& leases, absl::Time now) = 0;
  // The lease has ended without a contribution that counts, and its token is void. `expired`: its worker was silent.
  virtual void OnReleased(const TokenLease& lease, bool expired) {}
  // A contribution is there, and waits until sums have room for it (SumAdmission); `lease` is null if its lease ended
  // before, or it waits already. OnResumed: it waits no longer.
  virtual void OnSuspended(const TokenLease* lease) {}
  virtual void OnResumed(const TokenLease& lease) {}
  // The worker takes longer than usual: no contribution waits for what it may bring.
  virtual bool IsSlow(const TokenLease& lease, absl::Time now) const { return false; }

  // A contribution of a worker that the machine let contribute has ended. What it is worth: CONTRIBUTION_ACCEPTED or
  // CONTRIBUTION_DUPLICATE.
  virtual v1::ContributionResult Accept(const Contribution& contribution) = 0;
  // Nobody needs to contribute any more to what the token names: the contribution to it is whole and in time.
  // `lease`, the session's, ends; null if it ended before.
  virtual void Cover(uint64_t session, const StepToken& token, const TokenLease* lease, absl::Time now) = 0;
  // Holds digests against those of other workers.
  virtual Compared Compare(Digests digests) { return {}; }
  // The step can be committed; `summed`: every sum of what was contributed to it is complete.
  virtual bool CanCommit(bool summed, absl::Time now) = 0;
  // Why what was contributed must not be committed.
  virtual absl::Status CheckCommit() const { return absl::OkStatus(); }
  // `step` updates are applied. `leases` are those that the commit ends.
  virtual void OnCommit(int64_t step, const TokenLeases& leases) = 0;
  // What was contributed to the step in progress is thrown away; it begins anew. No token is left.
  virtual void RestartStep() = 0;

  // Fills what was compared, if anything is.
  virtual void FillStatus(v1::RunStatus* status) const {}
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Who computes what, which contributions count, and when a step is over. Between the machine, which knows the protocol
// of each worker and leaves all choices to this, and the tokens. `deterministic` gives out each slot of a step until it
// is covered. FIRST_ARRIVALS would give every waiting worker a token that carries the step, take the first R
// contributions and call later ones stale; ASYNC would commit at every contribution. Pure: no lock, no clock, no I/O;
// the time never goes back. Not thread-safe.
class StepPolicy {
 public:
  struct Assignment {
    uint64_t session = 0;
    StepToken token;
  };
  // A token that a worker holds for a limited time.
  struct Lease {
    uint64_t session = 0;
    StepToken token;
    absl::Time deadline;
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
  // The worker is gone; its token is void.
  virtual void Remove(uint64_t session) = 0;

  // Tokens for those that wait, in order of preference; the machine gives each of them to its worker, and calls Update.
  using Assignments = absl::InlinedVector<Assignment, 2>;
  virtual Assignments Assign(absl::Time now) = 0;
  // The session's token, if any, is void.
  virtual void Release(uint64_t session) = 0;
  // The worker is alive: its lease begins again.
  virtual void Renew(uint64_t session, absl::Time now) = 0;
  // The session's contribution is there, and waits until sums have room for it (SumAdmission); its lease goes on. From
  // now on the first slots of the step come first, since the others wait for them. Resume: it waits no longer.
  virtual void Suspend(uint64_t session, absl::Time now) = 0;
  virtual void Resume(uint64_t session, absl::Time now) = 0;
  // Some worker is at work for the step, in the usual time: what it brings may make room for those that wait.
  virtual bool AnyInTime(absl::Time now) const = 0;
  // Voids the leases that have ended by `now`.
  virtual std::vector<Lease> Expire(absl::Time now) = 0;
  virtual absl::optional<Lease> FindLease(uint64_t session) const = 0;
  // Some worker holds a token.
  virtual bool AnyLease() const = 0;

  // A contribution of a worker that the machine let contribute has ended. What it is worth: CONTRIBUTION_ACCEPTED or
  // CONTRIBUTION_DUPLICATE.
  virtual v1::ContributionResult Accept(const Contribution& contribution) = 0;
  // Nobody needs to contribute any more to what the token names: the contribution to it is whole and in time.
  virtual void Cover(uint64_t session, const StepToken& token, absl::Time now) = 0;
  // Holds digests against those of other workers.
  virtual Compared Compare(Digests digests) { return {}; }
  // The step can be committed; `summed`: every sum of what was contributed to it is complete.
  virtual bool CanCommit(bool summed, absl::Time now) = 0;
  // Why what was contributed must not be committed.
  virtual absl::Status CheckCommit() const { return absl::OkStatus(); }
  // `step` updates are applied; all tokens are void.
  virtual void OnCommit(int64_t step) = 0;
  // What was contributed to the step in progress is thrown away; it begins anew, and all tokens are void.
  virtual void RestartStep() = 0;

  // Fills what was compared, if anything is.
  virtual void FillStatus(v1::RunStatus* status) const {}
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_

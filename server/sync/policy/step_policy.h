#ifndef LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/server/sync/workers/token_leases.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// Who computes what, which contributions count, and when a step is over. The machine knows the protocol of each worker,
// keeps the leases of tokens, and leaves all choices to this: it asks Assign, Judge and Complete, and reports the rest.
// `deterministic` gives out each slot of a step until it is covered; `first_arrivals` takes the first R contributions
// that are not stale; `async` makes a step of every contribution. Pure: no lock, no clock, no I/O; the time never goes
// back. Not thread-safe.
class StepPolicy {
 public:
  // Properties of the policy, constant during a run.
  struct Traits {
    // A contribution is summed while it streams in, since all contributions to what a token names have the same bits:
    // half of one does no harm. Otherwise each is staged, and counts as a whole or not at all. Its token then names one
    // slot, and it becomes the slot of its place among the step's contributions that count.
    bool sums_while_streaming = true;
    // A commit voids all tokens, since a contribution to an earlier step never counts.
    bool commit_voids_tokens = true;
  };
  struct Assignment {
    uint64_t session = 0;
    StepToken token;
    bool backup = false;  // another worker computes the same
  };
  struct Contribution {
    uint64_t session = 0;
    absl::string_view worker;  // for people
    StepToken token;
    // The session's lease, which ends after this call; OnReleased is not called if the contribution counts. Null if it
    // ended before.
    const TokenLease* lease = nullptr;
    // All of it is in the sums of the step in progress: no other worker needs to contribute what the token names.
    bool counts = false;
    // How long it took since the token was given; nullopt if its worker has not ended it, but the sums are complete.
    absl::optional<absl::Duration> took;
    // The digests of its gradients, by trainable variable, if the token asked for them.
    absl::optional<absl::Span<const uint64_t>> digests;
  };
  struct Outcome {
    // Not OK: the digests are malformed. The contribution is refused.
    absl::Status status;
    std::vector<std::string> warnings;
    // Not OK: the run cannot continue, because two workers computed different things, and it is to fail then.
    absl::Status failure;
  };

  virtual ~StepPolicy() = default;

  virtual Traits traits() const = 0;
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

  // Decides whether a contribution to the token counts, before anything of it is summed. Returns CONTRIBUTION_ACCEPTED
  // or the result to send to the worker. One that counts is still a CONTRIBUTION_DUPLICATE if nothing of it was new. If
  // contributions are staged, the answer when it is whole decides, and OnContribution follows.
  virtual v1::ContributionResult Judge(const StepToken& token) const = 0;
  // A contribution has ended, whether it counts or not, or the sums are complete before its end. One that Judge accepts
  // and that does not count came while the run was held: its batch is to be given out again.
  virtual Outcome OnContribution(const Contribution& contribution, absl::Time now) = 0;
  // The input has no batch for the session's token; OnContribution was called before. Returns true if the run ends.
  // Called if contributions are staged; otherwise the run always ends.
  virtual bool OnInputEnded(uint64_t session) { return true; }
  // Returns whether the step can be committed; `summed`: every sum of what was contributed to it is complete.
  virtual bool Complete(bool summed, absl::Time now) = 0;
  // Returns why a complete step must not be committed.
  virtual absl::Status CheckCommit() const { return absl::OkStatus(); }
  // `step` updates are applied. `leases` are those at the commit, which ends them if it voids tokens.
  virtual void OnCommit(int64_t step, const TokenLeases& leases) = 0;
  // Discards all contributions to the step in progress, which begins again. No token is left.
  virtual void RestartStep() = 0;

  // The next position of each input stream, as the checkpoint of the last step keeps them. Empty without streams.
  virtual std::vector<int64_t> stream_positions() const { return {}; }

  // Fills what was compared, if anything is.
  virtual void FillStatus(v1::RunStatus* status) const {}
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_

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

// Decides which worker computes what, which contributions count, and when a step is complete. The machine (StepMachine)
// handles the protocol with each worker and keeps the leases of tokens, but leaves all choices to the policy: it asks
// Assign, Judge and Complete, and reports everything else. `deterministic` assigns each slot of a step until the slot
// is covered; `first_arrivals` accepts the first R contributions that are not stale; `async` turns every contribution
// into a step. Pure: no lock, no clock, no I/O; the time passed to it never goes backward. Not thread-safe.
class StepPolicy {
 public:
  // Properties of the policy, constant during a run.
  struct Traits {
    // If true, a contribution is summed while it streams in: all contributions for a token have the same bits, so a
    // part of one does no harm. Otherwise, each contribution is staged, and counts entirely or not at all. Its token
    // then names one slot, and the contribution is summed as the slot given by its place among the step's contributions
    // that count.
    bool sums_while_streaming = true;
    // If true, a commit voids all tokens, because a contribution to an earlier step never counts.
    bool commit_voids_tokens = true;
  };
  struct Assignment {
    uint64_t session = 0;
    StepToken token;
    bool backup = false;  // another worker computes the same slots
  };
  struct Contribution {
    uint64_t session = 0;
    absl::string_view worker;  // for display
    StepToken token;
    // The session's lease, which ends after this call; OnReleased is not called if the contribution counts. Null if the
    // lease has already ended.
    const TokenLease* lease = nullptr;
    // True if the whole contribution is in the sums of the step in progress, so that no other worker needs to
    // contribute what the token names.
    bool counts = false;
    // Time since the token was issued; nullopt if the sums are complete before the worker has ended the contribution.
    absl::optional<absl::Duration> took;
    // The digests of the contribution's gradients, by trainable variable, if the token requested them.
    absl::optional<absl::Span<const uint64_t>> digests;
  };
  struct Outcome {
    // Not OK if the digests are malformed; the contribution is then refused.
    absl::Status status;
    std::vector<std::string> warnings;
    // Not OK if the run cannot continue, because two workers computed different results and this must fail the run.
    absl::Status failure;
  };

  virtual ~StepPolicy() = default;

  virtual Traits traits() const = 0;
  // Adds a worker, or records that it has changed.
  virtual void Update(uint64_t session, const WorkerState& worker) = 0;
  // Removes a worker. Its lease, if any, was released before.
  virtual void Remove(uint64_t session) = 0;

  // Returns tokens for waiting workers, in order of preference. The machine gives each token to its worker with a
  // lease, and calls Update. `leases` are those of the tokens that were issued before.
  using Assignments = absl::InlinedVector<Assignment, 2>;
  virtual Assignments Assign(const TokenLeases& leases, absl::Time now) = 0;
  // Called when a lease has ended without a contribution that counts, so that its token is void. `expired` is true if
  // the lease ended because its worker was silent.
  virtual void OnReleased(const TokenLease& lease, bool expired) {}
  // OnSuspended is called when a contribution that has arrived must wait until the sums have room for it
  // (SumAdmission). `lease` is null if the contribution's lease has already ended or is already suspended. OnResumed is
  // called when the wait ends.
  virtual void OnSuspended(const TokenLease* lease) {}
  virtual void OnResumed(const TokenLease& lease) {}
  // Returns true if the worker takes longer than usual. Other contributions then do not wait for what it may
  // contribute.
  virtual bool IsSlow(const TokenLease& lease, absl::Time now) const { return false; }

  // Decides whether a contribution to the token counts, before any of it is summed. Returns CONTRIBUTION_ACCEPTED or
  // the result to send to the worker. The result of an accepted contribution is still CONTRIBUTION_DUPLICATE if none of
  // it was new. If contributions are staged, the verdict on the complete one decides, and OnContribution follows.
  virtual v1::ContributionResult Judge(const StepToken& token) const = 0;
  // Called when a contribution has ended, whether it counts or not, or when the sums are complete before its end. If
  // Judge accepts the contribution but it does not count, it arrived while the run was held, and its batch must be
  // assigned again.
  virtual Outcome OnContribution(const Contribution& contribution, absl::Time now) = 0;
  // Called if the input has no batch for the session's token, after OnContribution. Returns true if the run ends.
  // Called only if contributions are staged; otherwise the run always ends.
  virtual bool OnInputEnded(uint64_t session) { return true; }
  // Returns true if the step can be committed. `summed` is true if every sum of its contributions is complete.
  virtual bool Complete(bool summed, absl::Time now) = 0;
  // Returns an error if a complete step must not be committed.
  virtual absl::Status CheckCommit() const { return absl::OkStatus(); }
  // Called when `step` updates have been applied. `leases` are those that exist at the commit; if a commit voids
  // tokens, they end after this call.
  virtual void OnCommit(int64_t step, const TokenLeases& leases) = 0;
  // Discards all contributions to the step in progress, because the step restarts. Called only when no token is
  // outstanding.
  virtual void RestartStep() = 0;

  // Returns the next position of each input stream, as stored in the checkpoint of the last step. Empty without
  // streams.
  virtual std::vector<int64_t> stream_positions() const { return {}; }

  // Fills in the results of comparisons, if there are any.
  virtual void FillStatus(v1::RunStatus* status) const {}
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_STEP_POLICY_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_DETERMINISTIC_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_DETERMINISTIC_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/policy/slot_audit.h"
#include "lockstep/server/sync/policy/slot_queue.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/policy/worker_ledger.h"
#include "lockstep/server/sync/workers/token_leases.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The policy whose weights do not depend on what the workers do: every slot of a step is computed, no matter by which
// worker. Slots are assigned in blocks. Workers that took part in the newest step get tokens first. A worker held back
// by its startup delay gets a token only if all are held back, and a worker that does not read its replies only if
// there is no other. A slow worker gets the slots that it can finish before the others would complete the step without
// it; a worker that gets none computes copies (WorkerLedger). Audited slots are assigned individually, to two workers
// each, and a step waits for both copies as long as SlotAudit says. Assigning costs O(log R + log N) for each token.
// Pure; not thread-safe.
class DeterministicPolicy : public StepPolicy {
 public:
  struct Options {
    SlotQueue::Options queue;
    // The audit's number of slots is taken from `queue`.
    SlotAudit::Options audit;
  };

  DeterministicPolicy(const Options& options, int64_t step);

  Traits traits() const override { return {}; }
  void Update(uint64_t session, const WorkerState& worker) override { ledger_.Update(session, worker); }
  void Remove(uint64_t session) override;
  Assignments Assign(const TokenLeases& leases, absl::Time now) override;
  void OnReleased(const TokenLease& lease, bool expired) override;
  // For the rest of the step, makes the policy assign the step's first slots first, because the waiting contributions
  // need them.
  void OnSuspended(const TokenLease* lease) override;
  void OnResumed(const TokenLease& lease) override { queue_.Resume(lease); }
  bool IsSlow(const TokenLease& lease, absl::Time now) const override { return queue_.IsSlow(lease, now); }
  // Copies have the same bits, so a copy for an earlier step is harmless.
  v1::ContributionResult Judge(const StepToken& token) const override {
    return token.step == step_ ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_DUPLICATE;
  }
  Outcome OnContribution(const Contribution& contribution, absl::Time now) override;
  bool Complete(bool summed, absl::Time now) override;
  absl::Status CheckCommit() const override { return audit_.CheckCommit(); }
  void OnCommit(int64_t step, const TokenLeases& leases) override;
  void RestartStep() override;
  void FillStatus(v1::RunStatus* status) const override;

 private:
  // Marks the slots of the contribution's block as covered.
  void Cover(const Contribution& contribution, absl::Time now);
  // The workers that may get tokens at a given moment.
  struct Team {
    int64_t workers = 0;   // workers that share the slots
    int64_t auditors = 0;  // workers whose copies a step may wait for
    // True if idle workers compute second copies: there are more workers than slots, or the first step takes long and
    // nothing shows yet which worker hangs.
    bool copies = false;
    // True if all ranks are treated like kFull, because there is no fast worker or none has completed the step in time.
    bool equal = false;
    // True if no worker is computing the step, and the fast workers are busy with an earlier one.
    bool idle = false;
  };
  // Returns true if the worker whose contribution completed the previous step has not ended it yet. It is about to
  // request a token, so slow workers wait for it.
  bool AwaitsEnd() const { return unended_ && unended_->step == step_ - 1; }
  // Returns the number of workers that may compute a copy of an audited slot. If two copies differ, any worker is worth
  // waiting for, because the third copy identifies the faulty host.
  int64_t CountAuditors(absl::Time now);
  Team FindTeam(const TokenLeases& leases, absl::Time now);
  // Gives tokens to the waiting workers of a rank, as long as there is work for them.
  void AssignRank(WorkerLedger::Rank rank, const Team& team, const TokenLeases& leases, absl::Time now,
                  Assignments* assignments);
  // Takes the block that the worker should compute next. Returns nullopt if there is nothing for it.
  absl::optional<Assignment> Take(const WorkerLedger::Next& next, WorkerLedger::Rank rank, const Team& team,
                                  const TokenLeases& leases, absl::Time now);
  // Returns the part of the step's delay that the session did not cause: the delay of the first block that another
  // worker contributed or, if there is none, how late another worker began to wait for a token. Returns nullopt if no
  // other worker could have computed anything.
  absl::optional<absl::Duration> DelayOfOthers(uint64_t session) const;
  // Reports the completed step, which began at began_, to the ledger.
  void CloseStep(const TokenLeases& leases);
  // Begins or restarts `step`.
  void StartStep(int64_t step);

  const int64_t slots_;
  const absl::Duration lease_;
  int64_t step_;
  SlotQueue queue_;
  WorkerLedger ledger_;
  SlotAudit audit_;
  // The time when tokens of this step were first requested.
  absl::optional<absl::Time> opened_;
  // The time when the step's first token was issued, and the time when the step could be committed.
  absl::optional<absl::Time> began_, ended_;
  // The sessions that were given free slots of the step.
  std::vector<uint64_t> computed_;
  // A block of the step that a worker contributed, possibly before its contribution has ended.
  struct Covered {
    uint64_t session = 0;
    absl::Time arrived;
    // The time at which the block's token was issued; nullopt without a lease.
    absl::optional<absl::Time> issued;
    // The time that such a block usually takes.
    double usual_seconds = 0;
  };
  std::vector<Covered> covered_;
  // The newest contribution that completed a step before its end arrived, unless the end has arrived since.
  struct Unended {
    uint64_t session = 0;
    int64_t step = 0;
  };
  absl::optional<Unended> unended_;
  // The last session that contributed.
  uint64_t last_ = 0;
  // True if this step leases its audited slots individually, because there is a second worker to compare with.
  bool separated_ = false;
  // True if a contribution in this step has waited for contributions to earlier slots.
  bool first_slots_first_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_DETERMINISTIC_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_DETERMINISTIC_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_DETERMINISTIC_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/policy/slot_audit.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/policy/worker_roster.h"
#include "lockstep/server/sync/slot_leases.h"
#include "lockstep/server/sync/worker_state.h"
#include "lockstep/v1/chief.pb.h"

namespace lockstep {

// The policy whose weights depend on nothing that workers do: every slot of a step is computed, by whom does not
// matter. Slots are leased in blocks; a token goes first to those that took part in the newest step, to a worker that
// is held back by its startup delay only if all are, and to one that does not read its replies only if there is nobody
// else. Audited slots are leased alone, to two workers, and a step waits for both copies as long as SlotAudit says.
// Assigning costs O(log R + log N) for each token. Pure; not thread-safe.
class DeterministicPolicy : public StepPolicy {
 public:
  struct Options {
    int64_t slots = 1;  // replicas_to_aggregate
    absl::Duration lease = absl::Seconds(5);
    // Its slots and its patience are those above.
    SlotAudit::Options audit;
  };

  DeterministicPolicy(const Options& options, int64_t step);

  void Update(uint64_t session, const WorkerState& worker) override { roster_.Update(session, worker); }
  void Remove(uint64_t session) override;
  Assignments Assign(absl::Time now) override;
  void Release(uint64_t session) override;
  void Renew(uint64_t session, absl::Time now) override { leases_.Renew(session, now); }
  std::vector<Lease> Expire(absl::Time now) override;
  absl::optional<Lease> FindLease(uint64_t session) const override;
  bool AnyLease() const override { return leases_.AnyLease(); }
  v1::ContributionResult Accept(const Contribution& contribution) override {
    return contribution.any_new ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_DUPLICATE;
  }
  void Cover(uint64_t session, const StepToken& token, absl::Time now) override;
  Compared Compare(Digests digests) override;
  bool CanCommit(bool summed, absl::Time now) override;
  absl::Status CheckCommit() const override { return audit_.CheckCommit(); }
  void OnCommit(int64_t step) override;
  void RestartStep() override;
  void FillStatus(v1::RunStatus* status) const override;

 private:
  Lease LeaseOf(const SlotLeases::Lease& lease) const;
  // What the worker is to compute while so many take part; nullopt when there is nothing for it.
  absl::optional<StepToken> Take(const WorkerRoster::Next& next, int64_t workers, absl::Time now);

  const int64_t slots_;
  int64_t step_;
  SlotLeases leases_;
  WorkerRoster roster_;
  SlotAudit audit_;
  // The audited slots of this step are leased alone: there was somebody to compare with.
  bool separated_ = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_DETERMINISTIC_H_

#include "lockstep/server/sync/policy/deterministic.h"

#include <utility>

namespace lockstep {
namespace {

SlotLeases::Options LeaseOptions(const DeterministicPolicy::Options& options) {
  SlotLeases::Options leases;
  leases.slots = options.slots;
  leases.lease = options.lease;
  return leases;
}

SlotAudit::Options AuditOptions(const DeterministicPolicy::Options& options) {
  SlotAudit::Options audit = options.audit;
  audit.slots = options.slots;
  audit.patience = options.lease;
  return audit;
}

}  // namespace

DeterministicPolicy::DeterministicPolicy(const Options& options, int64_t step)
    : slots_(options.slots),
      step_(step),
      leases_(LeaseOptions(options)),
      roster_(options.lease, step),
      audit_(AuditOptions(options), step) {}

void DeterministicPolicy::Release(uint64_t session) {
  leases_.Release(session);
  audit_.OnReleased(session);
}

void DeterministicPolicy::Remove(uint64_t session) {
  leases_.Remove(session);
  audit_.OnReleased(session);
  roster_.Remove(session);
}

absl::optional<StepToken> DeterministicPolicy::Take(const WorkerRoster::Next& next, int64_t workers, absl::Time now) {
  absl::optional<SlotBlock> block = leases_.TakeFree(next.session, workers, now, next.last_block);
  // A slot that was begun while its worker was alone has no digests to compare with.
  bool audited = block && separated_ && block->count == 1 && audit_.Audits(block->first);
  if (const auto slot = block ? absl::nullopt : audit_.Choose(next.session, workers)) {
    block = SlotBlock{*slot, 1};
    leases_.TakeCopy(next.session, *block, now);
    audited = true;
  }
  if (!block) block = leases_.TakeBackup(next.session, workers, now);
  if (!block) return absl::nullopt;
  if (audited) audit_.OnLeased(block->first, next.session);
  return StepToken{step_, *block, audited || (audit_.enabled() && block->count == 1 && workers > slots_)};
}

StepPolicy::Assignments DeterministicPolicy::Assign(absl::Time now) {
  Assignments assignments;
  roster_.StartOneIfNobodyTakesPart(now);
  const bool audits = audit_.enabled() && audit_.Lacks(roster_.Count(/*silent=*/false, now));
  if (!audits && !leases_.AnythingDue(now)) return assignments;  // as after most frames
  int64_t workers = roster_.Count(/*silent=*/false, now);
  const bool silent = workers == 0;
  if (silent) workers = roster_.Count(/*silent=*/true, now);
  if (workers > 1 && !separated_) {
    for (const int64_t slot : audit_.slots()) leases_.Separate(slot);
    separated_ = true;
  }
  std::vector<uint64_t> idle;  // computed themselves what there is to compute once more
  while (leases_.AnythingFor(workers, now) || audit_.Lacks(workers)) {
    const auto next = roster_.TakeNext(silent);
    if (!next) break;
    const auto token = Take(*next, workers, now);
    if (token) {
      assignments.push_back({next->session, *token});
    } else {
      idle.push_back(next->session);
    }
  }
  for (const uint64_t session : idle) roster_.PutBack(session);
  return assignments;
}

StepPolicy::Lease DeterministicPolicy::LeaseOf(const SlotLeases::Lease& lease) const {
  return {lease.session, {step_, lease.block}, lease.deadline, lease.backup};
}

std::vector<StepPolicy::Lease> DeterministicPolicy::Expire(absl::Time now) {
  std::vector<Lease> expired;
  for (const SlotLeases::Lease& lease : leases_.Expire(now)) {
    audit_.OnReleased(lease.session);
    expired.push_back(LeaseOf(lease));
  }
  return expired;
}

absl::optional<StepPolicy::Lease> DeterministicPolicy::FindLease(uint64_t session) const {
  const SlotLeases::Lease* lease = leases_.FindLease(session);
  if (lease == nullptr) return absl::nullopt;
  return LeaseOf(*lease);
}

void DeterministicPolicy::Cover(uint64_t session, const StepToken& token, absl::Time now) {
  leases_.Cover(token.block, session, now);
}

StepPolicy::Compared DeterministicPolicy::Compare(Digests digests) {
  SlotAudit::Outcome outcome = audit_.OnCopy(digests.token.step, digests.token.block.first,
                                             {digests.session, std::move(digests.worker), std::move(digests.digests)});
  return {std::move(outcome.status), std::move(outcome.warnings), std::move(outcome.failure)};
}

bool DeterministicPolicy::CanCommit(bool summed, absl::Time now) {
  return summed && !audit_.Waits(roster_.Count(/*silent=*/false, now), now);
}

void DeterministicPolicy::FillStatus(v1::RunStatus* status) const {
  if (audit_.enabled()) audit_.FillStatus(status->mutable_audit());
}

void DeterministicPolicy::OnCommit(int64_t step) {
  if (step != step_) audit_.StartStep(step);
  separated_ = false;
  step_ = step;
  leases_.StartStep();
  roster_.SetStep(step);
}

void DeterministicPolicy::RestartStep() {
  audit_.RestartStep();
  OnCommit(step_);
}

}  // namespace lockstep

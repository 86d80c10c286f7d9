#include "lockstep/server/sync/policy/deterministic.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace lockstep {
namespace {

SlotAudit::Options AuditOptions(const DeterministicPolicy::Options& options) {
  SlotAudit::Options audit = options.audit;
  audit.slots = options.queue.slots;
  return audit;
}

// Minimum time that a step waits for an audited copy, so that a copy is not lost because a processor is briefly busy.
constexpr absl::Duration kLeastAuditWait = absl::Milliseconds(250);
// A step accepts workers of any rank once it has taken this many times as long as usual or, if no worker is computing
// it, just as long as usual.
constexpr int64_t kLate = 4;
// Until the chief has timed a contribution, idle workers compute copies of a step that has taken this long.
constexpr absl::Duration kFirstPatience = absl::Milliseconds(500);

// Maximum number of slow workers to examine per event without finding a slot for them.
constexpr size_t kMostLate = 4;

}  // namespace

DeterministicPolicy::DeterministicPolicy(const Options& options, int64_t step)
    : slots_(options.queue.slots),
      lease_(options.queue.lease),
      step_(step),
      queue_(options.queue),
      ledger_(slots_, lease_, step),
      audit_(AuditOptions(options), step) {}

void DeterministicPolicy::Remove(uint64_t session) {
  ledger_.Remove(session);
  if (unended_ && unended_->session == session) unended_.reset();
}

void DeterministicPolicy::OnReleased(const TokenLease& lease, bool expired) {
  queue_.Release(lease);
  audit_.OnReleased(lease.session);
  if (expired) ledger_.OnLeaseEnded(lease.session);
}

void DeterministicPolicy::OnSuspended(const TokenLease* lease) {
  if (lease != nullptr) queue_.Suspend(*lease);
  first_slots_first_ = true;
}

int64_t DeterministicPolicy::CountAuditors(absl::Time now) {
  return audit_.disputed() ? ledger_.CountAlive(now) : ledger_.CountTrusted(now);
}

DeterministicPolicy::Team DeterministicPolicy::FindTeam(const TokenLeases& leases, absl::Time now) {
  using Rank = WorkerLedger::Rank;
  Team team;
  const int64_t full = ledger_.Count(Rank::kFull, now);
  team.workers = full + ledger_.Count(Rank::kPart, now);
  if (audit_.enabled()) team.auditors = CountAuditors(now);
  const int64_t late = leases.empty() ? 1 : kLate;
  team.equal = full == 0 || (opened_ && now - *opened_ > late * ledger_.usual_step());
  team.idle = leases.empty() && !ledger_.Waits(Rank::kFull) && !ledger_.Waits(Rank::kPart) && !AwaitsEnd();
  if (team.equal || team.idle) team.workers = ledger_.CountAll(now);
  if (team.workers == 0) team.workers = ledger_.Count(Rank::kSilent, now);
  team.copies = team.workers > slots_ || (!queue_.timed() && began_ && now - *began_ > kFirstPatience);
  return team;
}

absl::optional<StepPolicy::Assignment> DeterministicPolicy::Take(const WorkerLedger::Next& next,
                                                                 WorkerLedger::Rank rank, const Team& team,
                                                                 const TokenLeases& leases, absl::Time now) {
  const bool full = team.equal || rank == WorkerLedger::kFull || (team.idle && next.trusted);
  const absl::Duration elapsed = began_ ? now - *began_ : absl::ZeroDuration();
  const int64_t most = full ? slots_ : rank == WorkerLedger::kPart ? ledger_.SlotsInTime(next.session, elapsed) : 0;
  absl::optional<SlotBlock> block;
  bool backup = false;
  if (first_slots_first_ && most > 0) {
    block = queue_.TakeFirst(team.workers, now);
    if (!block) {
      block = queue_.TakeFirstCopy(leases, now);
      backup = block.has_value();
    }
  }
  if (!block) block = queue_.TakeFree(team.workers, most, now, next.last_block);
  const bool extra = !block || backup || next.last_step == step_;
  if (block) computed_.push_back(next.session);
  // A slot that was started while its worker was alone has no digests to compare with.
  bool audited = block && separated_ && block->count == 1 && audit_.Audits(block->first);
  if (const auto slot =
          block || !(next.trusted || audit_.disputed()) ? absl::nullopt : audit_.Choose(next.session, team.auditors)) {
    block = SlotBlock{*slot, 1};
    queue_.TakeCopy(*block, now);
    audited = backup = true;
  }
  if (!block) {
    block = queue_.TakeBackup(team.copies || rank == WorkerLedger::kBackup, now);
    if (!block) return absl::nullopt;
    backup = true;
  }
  if (audited) audit_.OnLeased(block->first, next.session);
  if (!began_) began_ = now;
  const bool digest = audited || (audit_.enabled() && block->count == 1 && team.workers > slots_);
  return Assignment{next.session, {step_, *block, digest, extra}, backup};
}

void DeterministicPolicy::AssignRank(WorkerLedger::Rank rank, const Team& team, const TokenLeases& leases,
                                     absl::Time now, Assignments* assignments) {
  const bool free = team.equal || team.idle || rank != WorkerLedger::kBackup;
  const bool single = team.copies || rank == WorkerLedger::kBackup;
  const size_t most_idle = !team.equal && rank == WorkerLedger::kPart ? kMostLate : static_cast<size_t>(-1);
  std::vector<uint64_t> idle;  // have computed what needs a copy themselves, or are too slow
  while (idle.size() < most_idle && ledger_.Waits(rank) &&
         ((free && queue_.AnyFree()) || queue_.AnyBackup(single, now) || audit_.Lacks(team.auditors))) {
    const WorkerLedger::Next next = ledger_.TakeNext(rank);
    const auto assignment = Take(next, rank, team, leases, now);
    if (assignment) {
      assignments->push_back(*assignment);
    } else {
      idle.push_back(next.session);
    }
  }
  for (const uint64_t session : idle) ledger_.PutBack(session);
}

StepPolicy::Assignments DeterministicPolicy::Assign(const TokenLeases& leases, absl::Time now) {
  Assignments assignments;
  if (!opened_) opened_ = now;
  ledger_.StartOneIfNobodyTakesPart(now);
  const bool audits = audit_.enabled() && audit_.Lacks(CountAuditors(now));
  if (!audits && !queue_.AnythingDue(now)) return assignments;  // the common case
  const Team team = FindTeam(leases, now);
  if (team.auditors > 1 && !separated_) {
    for (const int64_t slot : audit_.slots()) queue_.Separate(slot);
    separated_ = true;
  }
  const bool silent = ledger_.CountAll(now) == 0;
  using Rank = WorkerLedger::Rank;
  for (const Rank rank : {Rank::kFull, Rank::kPart, Rank::kBackup, Rank::kSilent}) {
    if (rank == Rank::kBackup && AwaitsEnd() && !team.equal) continue;
    if ((rank == Rank::kSilent) == silent) AssignRank(rank, team, leases, now, &assignments);
  }
  return assignments;
}

void DeterministicPolicy::Cover(const Contribution& contribution, absl::Time now) {
  const SlotBlock& block = contribution.token.block;
  last_ = contribution.session;
  Covered covered = {contribution.session, now, absl::nullopt,
                     static_cast<double>(block.count) * ledger_.usual_slot_seconds()};
  if (contribution.lease != nullptr) covered.issued = contribution.lease->issued;
  covered_.push_back(covered);
  queue_.Cover(block, contribution.lease, now);
}

StepPolicy::Outcome DeterministicPolicy::OnContribution(const Contribution& contribution, absl::Time now) {
  const StepToken& token = contribution.token;
  SlotAudit::Outcome compared;
  if (contribution.digests) {
    if (token.step == step_) last_ = contribution.session;
    compared = audit_.OnCopy(token.step, token.block.first,
                             {contribution.session,
                              std::string(contribution.worker),
                              {contribution.digests->begin(), contribution.digests->end()}});
  }
  if (compared.status.ok()) {
    if (contribution.counts) Cover(contribution, now);
    if (contribution.took) ledger_.OnContributed(contribution.session, token.block.count, *contribution.took);
  }
  if (!contribution.took) {
    unended_ = {contribution.session, token.step};
  } else if (unended_ && unended_->session == contribution.session) {
    unended_.reset();
  }
  return {std::move(compared.status), std::move(compared.warnings), std::move(compared.failure)};
}

bool DeterministicPolicy::Complete(bool summed, absl::Time now) {
  if (!summed) return false;
  if (audit_.enabled()) {
    const absl::Duration patience = std::min(lease_, std::max(kLeastAuditWait, queue_.SlowAfter(1)));
    if (audit_.Waits(CountAuditors(now), patience, now)) return false;
  }
  ended_ = now;
  return true;
}

void DeterministicPolicy::FillStatus(v1::RunStatus* status) const {
  if (audit_.enabled()) audit_.FillStatus(status->mutable_audit());
}

absl::optional<absl::Duration> DeterministicPolicy::DelayOfOthers(uint64_t session) const {
  for (const Covered& covered : covered_) {
    if (!covered.issued || covered.session == session) continue;
    return std::max(covered.arrived - *covered.issued - absl::Seconds(covered.usual_seconds), absl::ZeroDuration());
  }
  const auto since = ledger_.OtherWaitsSince(session);
  if (!since) return absl::nullopt;
  return std::max(*since - *began_, absl::ZeroDuration());
}

void DeterministicPolicy::CloseStep(const TokenLeases& leases) {
  if (!began_ || !ended_) return;
  WorkerLedger::Sessions late, passed;
  audit_.ForEachAwaited([&](uint64_t session) { late.push_back(session); });
  leases.ForEach([&](const TokenLease& lease) {
    if (!lease.backup) late.push_back(lease.session);
    passed.push_back(lease.session);
  });
  const auto computing = static_cast<std::ptrdiff_t>(passed.size());
  const bool lacks = audit_.enabled() && audit_.Lacks(CountAuditors(*ended_));
  for (const Covered& covered : covered_) passed.push_back(covered.session);
  const WorkerLedger::Sessions behind = ledger_.OnPassed(passed);
  if (lacks) {  // the step waited for a worker to begin a copy
    late.insert(late.end(), behind.begin(), behind.end());
    late.insert(late.end(), passed.begin(), passed.begin() + computing);
  }
  if (late.empty()) late = behind;
  if (late.empty()) late.push_back(last_);
  computed_.insert(computed_.end(), late.begin(), late.end());
  std::sort(computed_.begin(), computed_.end());
  computed_.erase(std::unique(computed_.begin(), computed_.end()), computed_.end());
  const auto copies = separated_ ? static_cast<int64_t>(audit_.slots().size()) : 0;
  const absl::Duration took = *ended_ - *began_;
  for (const uint64_t session : computed_) {
    // A worker is not to blame for a delay that all workers share, or that no other worker waited for.
    const auto shared = DelayOfOthers(session);
    const bool waited_for = shared && std::find(late.begin(), late.end(), session) != late.end();
    ledger_.OnStep(session, shared ? took - *shared : took, waited_for, copies);
  }
}

void DeterministicPolicy::StartStep(int64_t step) {
  opened_.reset();
  began_.reset();
  ended_.reset();
  computed_.clear();
  covered_.clear();
  last_ = 0;
  separated_ = false;
  first_slots_first_ = false;
  step_ = step;
  queue_.StartStep();
  ledger_.SetStep(step);
}

void DeterministicPolicy::OnCommit(int64_t step, const TokenLeases& leases) {
  CloseStep(leases);
  audit_.StartStep(step);
  StartStep(step);
}

void DeterministicPolicy::RestartStep() {
  audit_.RestartStep();
  StartStep(step_);
}

}  // namespace lockstep

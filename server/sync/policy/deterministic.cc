#include "lockstep/server/sync/policy/deterministic.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

SlotAudit::Options AuditOptions(const DeterministicPolicy::Options& options) {
  SlotAudit::Options audit = options.audit;
  audit.slots = options.leases.slots;
  return audit;
}

// A step waits at least this long for an audited copy: a processor that is busy for a moment must not lose one.
constexpr absl::Duration kLeastAuditWait = absl::Milliseconds(250);
// A step that takes this many times as long as usual takes any worker. One that nobody computes need only take as long.
constexpr double kLate = 4;

// So many slow workers that no slot is left for are looked at for each event.
constexpr size_t kMostLate = 4;

}  // namespace

DeterministicPolicy::DeterministicPolicy(const Options& options, int64_t step)
    : slots_(options.leases.slots),
      lease_(options.leases.lease),
      step_(step),
      leases_(options.leases),
      ledger_(slots_, lease_, step),
      audit_(AuditOptions(options), step) {}

void DeterministicPolicy::Release(uint64_t session) {
  leases_.Release(session);
  audit_.OnReleased(session);
}

void DeterministicPolicy::Remove(uint64_t session) {
  leases_.Remove(session);
  audit_.OnReleased(session);
  ledger_.Remove(session);
}

int64_t DeterministicPolicy::CountAuditors(absl::Time now) {
  return audit_.disputed() ? ledger_.CountAlive(now) : ledger_.CountTrusted(now);
}

DeterministicPolicy::Team DeterministicPolicy::FindTeam(absl::Time now) {
  using Rank = WorkerLedger::Rank;
  Team team;
  const int64_t full = ledger_.Count(Rank::kFull, now);
  team.workers = full + ledger_.Count(Rank::kPart, now);
  team.auditors = CountAuditors(now);
  const double late = leases_.AnyLease() ? kLate : 1;
  team.equal = full == 0 || (opened_ && now - *opened_ > late * ledger_.usual_step());
  team.idle = !leases_.AnyLease() && !ledger_.Waits(Rank::kFull) && !ledger_.Waits(Rank::kPart);
  if (team.equal || team.idle) team.workers = ledger_.CountAll(now);
  if (team.workers == 0) team.workers = ledger_.Count(Rank::kSilent, now);
  return team;
}

absl::optional<StepToken> DeterministicPolicy::Take(const WorkerLedger::Next& next, WorkerLedger::Rank rank,
                                                    const Team& team, absl::Time now) {
  const bool full = team.equal || rank == WorkerLedger::kFull || (team.idle && next.trusted);
  const absl::Duration elapsed = began_ ? now - *began_ : absl::ZeroDuration();
  const int64_t most = full ? slots_ : rank == WorkerLedger::kPart ? ledger_.SlotsInTime(next.session, elapsed) : 0;
  absl::optional<SlotBlock> block;
  if (first_slots_first_ && most > 0) block = leases_.TakeFirst(next.session, team.workers, now);
  if (!block) block = leases_.TakeFree(next.session, team.workers, most, now, next.last_block);
  if (block) computed_.push_back(next.session);
  // A slot that was begun while its worker was alone has no digests to compare with.
  bool audited = block && separated_ && block->count == 1 && audit_.Audits(block->first);
  if (const auto slot =
          block || !(next.trusted || audit_.disputed()) ? absl::nullopt : audit_.Choose(next.session, team.auditors)) {
    block = SlotBlock{*slot, 1};
    leases_.TakeCopy(next.session, *block, now);
    audited = true;
  }
  const bool crowded = team.workers > slots_;
  if (!block) block = leases_.TakeBackup(next.session, crowded || rank == WorkerLedger::kBackup, now);
  if (!block) return absl::nullopt;
  if (audited) audit_.OnLeased(block->first, next.session);
  if (!began_) began_ = now;
  return StepToken{step_, *block, audited || (audit_.enabled() && block->count == 1 && crowded)};
}

void DeterministicPolicy::AssignRank(WorkerLedger::Rank rank, const Team& team, absl::Time now,
                                     Assignments* assignments) {
  const bool free = team.equal || team.idle || rank != WorkerLedger::kBackup;
  const bool single = team.workers > slots_ || rank == WorkerLedger::kBackup;
  const size_t most_idle = !team.equal && rank == WorkerLedger::kPart ? kMostLate : static_cast<size_t>(-1);
  std::vector<uint64_t> idle;  // computed themselves what there is to compute once more, or are too slow
  while (idle.size() < most_idle &&
         ((free && leases_.AnyFree()) || leases_.AnyBackup(single, now) || audit_.Lacks(team.auditors))) {
    const auto next = ledger_.TakeNext(rank);
    if (!next) break;
    const auto token = Take(*next, rank, team, now);
    if (token) {
      assignments->push_back({next->session, *token});
    } else {
      idle.push_back(next->session);
    }
  }
  for (const uint64_t session : idle) ledger_.PutBack(session);
}

StepPolicy::Assignments DeterministicPolicy::Assign(absl::Time now) {
  Assignments assignments;
  if (!opened_) opened_ = now;
  ledger_.StartOneIfNobodyTakesPart(now);
  const bool audits = audit_.enabled() && audit_.Lacks(CountAuditors(now));
  if (!audits && !leases_.AnythingDue(now)) return assignments;  // as after most frames
  const Team team = FindTeam(now);
  if (team.auditors > 1 && !separated_) {
    for (const int64_t slot : audit_.slots()) leases_.Separate(slot);
    separated_ = true;
  }
  const bool silent = ledger_.CountAll(now) == 0;
  using Rank = WorkerLedger::Rank;
  for (const Rank rank : {Rank::kFull, Rank::kPart, Rank::kBackup, Rank::kSilent}) {
    if ((rank == Rank::kSilent) == silent) AssignRank(rank, team, now, &assignments);
  }
  return assignments;
}

StepPolicy::Lease DeterministicPolicy::LeaseOf(const SlotLeases::Lease& lease) const {
  return {lease.session, {step_, lease.block}, lease.deadline, lease.backup};
}

std::vector<StepPolicy::Lease> DeterministicPolicy::Expire(absl::Time now) {
  std::vector<Lease> expired;
  for (const SlotLeases::Lease& lease : leases_.Expire(now)) {
    audit_.OnReleased(lease.session);
    ledger_.OnLeaseEnded(lease.session);
    expired.push_back(LeaseOf(lease));
  }
  return expired;
}

absl::optional<StepPolicy::Lease> DeterministicPolicy::FindLease(uint64_t session) const {
  const SlotLeases::Lease* lease = leases_.FindLease(session);
  if (lease == nullptr) return absl::nullopt;
  return LeaseOf(*lease);
}

v1::ContributionResult DeterministicPolicy::Accept(const Contribution& contribution) {
  ledger_.OnContributed(contribution.session, contribution.token.block.count, contribution.took);
  return contribution.any_new ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_DUPLICATE;
}

void DeterministicPolicy::Cover(uint64_t session, const StepToken& token, absl::Time now) {
  last_ = session;
  Covered covered = {session, absl::nullopt};
  if (const SlotLeases::Lease* const lease = leases_.FindLease(session)) {
    covered.delay = std::max(now - lease->issued - token.block.count * ledger_.usual_slot(), absl::ZeroDuration());
  }
  covered_.push_back(covered);
  leases_.Cover(token.block, session, now);
}

StepPolicy::Compared DeterministicPolicy::Compare(Digests digests) {
  if (digests.token.step == step_) last_ = digests.session;
  SlotAudit::Outcome outcome = audit_.OnCopy(digests.token.step, digests.token.block.first,
                                             {digests.session, std::move(digests.worker), std::move(digests.digests)});
  return {std::move(outcome.status), std::move(outcome.warnings), std::move(outcome.failure)};
}

bool DeterministicPolicy::CanCommit(bool summed, absl::Time now) {
  if (!summed) return false;
  const absl::Duration patience = std::min(lease_, std::max(kLeastAuditWait, leases_.SlowAfter(1)));
  if (audit_.enabled() && audit_.Waits(CountAuditors(now), patience, now)) return false;
  ended_ = now;
  return true;
}

void DeterministicPolicy::FillStatus(v1::RunStatus* status) const {
  if (audit_.enabled()) audit_.FillStatus(status->mutable_audit());
}

absl::optional<absl::Duration> DeterministicPolicy::DelayOfOthers(uint64_t session) const {
  for (const Covered& covered : covered_) {
    if (covered.delay && covered.session != session) return covered.delay;
  }
  const auto since = ledger_.OtherWaitsSince(session);
  if (!since) return absl::nullopt;
  return std::max(*since - *began_, absl::ZeroDuration());
}

void DeterministicPolicy::CloseStep() {
  if (!began_ || !ended_) return;
  std::vector<uint64_t> late, computing;
  audit_.ForEachAwaited([&](uint64_t session) { late.push_back(session); });
  leases_.ForEach([&](const SlotLeases::Lease& lease) {
    if (!lease.backup) late.push_back(lease.session);
    computing.push_back(lease.session);
  });
  const bool lacks = audit_.Lacks(CountAuditors(*ended_));
  std::vector<uint64_t> passed = computing;
  for (const Covered& covered : covered_) passed.push_back(covered.session);
  const std::vector<uint64_t> behind = ledger_.OnPassed(passed);
  if (lacks) {  // it waited for somebody to begin a copy
    late.insert(late.end(), behind.begin(), behind.end());
    late.insert(late.end(), computing.begin(), computing.end());
  }
  if (late.empty()) late = behind;
  if (late.empty()) late.push_back(last_);
  computed_.insert(computed_.end(), late.begin(), late.end());
  std::sort(computed_.begin(), computed_.end());
  computed_.erase(std::unique(computed_.begin(), computed_.end()), computed_.end());
  const auto copies = separated_ ? static_cast<int64_t>(audit_.slots().size()) : 0;
  for (const uint64_t session : computed_) {
    // No worker is to blame for a delay that all share, or that nobody waited for.
    const auto shared = DelayOfOthers(session);
    const absl::Duration took = *ended_ - *began_ - shared.value_or(absl::ZeroDuration());
    const bool waited_for = shared && std::find(late.begin(), late.end(), session) != late.end();
    ledger_.OnStep(session, took, waited_for, copies);
  }
}

void DeterministicPolicy::OnCommit(int64_t step) {
  if (step != step_) {
    CloseStep();
    audit_.StartStep(step);
  }
  opened_.reset();
  began_.reset();
  ended_.reset();
  computed_.clear();
  covered_.clear();
  last_ = 0;
  separated_ = false;
  first_slots_first_ = false;
  step_ = step;
  leases_.StartStep();
  ledger_.SetStep(step);
}

void DeterministicPolicy::RestartStep() {
  audit_.RestartStep();
  OnCommit(step_);
}

}  // namespace lockstep

#include "lockstep/server/sync/policy/worker_ledger.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {
namespace {

// The weight of a new measurement in the moving average of a slot's time.
constexpr double kNewWeight = 0.05;
// A worker's first kNew measurements have more weight, because its very first contribution takes especially long.
constexpr double kFirstWeight = 0.2;
constexpr int64_t kNew = 16;
// A measurement is capped at this multiple of the fastest worker's time, so that a worker is soon found to be fast
// again after one long pause.
constexpr double kSlowest = 20;
// A slow worker must finish within this fraction of the others' time.
constexpr double kInTime = 0.9;
// A worker with at least this credit gets a full share during the first kTrial of every kTrialEvery consecutive
// contributions that rate it as slow. On a busy machine, a few contributions of any worker may do so. In addition, a
// worker that shares a step with others takes longer for a slot than a worker that computes a whole block.
constexpr double kGoodCredit = WorkerLedger::kMostCredit / 2;
constexpr int64_t kTrial = 32, kTrialEvery = 8 * kTrial;

}  // namespace

void WorkerLedger::Enter(uint64_t session, const Entry& entry) {
  if (TakesPart(entry)) {
    ++taking_part_[entry.rank()];
    if (entry.trusted && !entry.silent) ++trusted_;
  }
  if (HasStarted(entry)) {
    if (entry.waiting) waiting_[entry.rank()].insert({-entry.contributed_step, session});
  } else {
    delayed_.insert({entry.not_before_step, session});
    if (entry.waiting) delayed_waiting_.insert(session);
  }
}

void WorkerLedger::Leave(uint64_t session, const Entry& entry) {
  if (TakesPart(entry)) {
    --taking_part_[entry.rank()];
    if (entry.trusted && !entry.silent) --trusted_;
  }
  if (HasStarted(entry)) {
    if (entry.waiting) waiting_[entry.rank()].erase({-entry.contributed_step, session});
  } else {
    delayed_.erase({entry.not_before_step, session});
    delayed_waiting_.erase(session);
  }
}

void WorkerLedger::Update(uint64_t session, const WorkerState& worker) {
  const auto [it, added] = entries_.try_emplace(session);
  Entry& entry = it->second;
  Standing next = entry;
  next.waiting = worker.phase() == WorkerState::Phase::kWaiting;
  if (next.waiting && !entry.waiting) entry.waits_since = worker.heard();
  next.awaits_token = worker.awaits_token();
  next.silent = worker.silent();
  next.left = worker.phase() == WorkerState::Phase::kLeft;
  // A worker that was started despite its delay stays started.
  next.not_before_step = std::min(entry.not_before_step, worker.not_before_step());
  next.contributed_step = worker.contributed_step();
  if (next.awaits_token) next.passed = false;
  if (next.awaits_token || next.left) behind_.erase(session);
  if (added) static_cast<Judgment&>(entry) = TakeJudgment(session);
  if (const auto& token = worker.last_token(); token && !token->extra) {
    entry.last_block = token->block;
    entry.last_step = token->step;
  }
  if (added || entry.heard != worker.heard()) {
    entry.heard = worker.heard();
    // The session is already watched unless the worker has lapsed.
    if (added || entry.lapsed) lapses_.Watch(session, entry.heard + patience_);
    next.lapsed = false;
  }
  // Most frames change only the time. However, a worker that was taken out of its line must be put back.
  const bool same = !added && !next.waiting && next == entry;
  const bool took_part = !added && TakesPart(entry);
  if (!added && !same) Leave(session, entry);
  static_cast<Standing&>(entry) = next;
  if (!same) Enter(session, entry);
  if (took_part != TakesPart(entry)) Touch();
}

WorkerLedger::Judgment WorkerLedger::TakeJudgment(uint64_t session) {
  Judgment judgment;
  judgment.credit_step = step_;
  const auto it =
      std::find_if(gone_.begin(), gone_.end(), [session](const auto& gone) { return gone.first == session; });
  if (it == gone_.end()) return judgment;
  judgment = it->second;
  gone_.erase(it);
  return judgment;
}

void WorkerLedger::Remove(uint64_t session) {
  const auto it = entries_.find(session);
  if (it == entries_.end()) return;
  Leave(session, it->second);
  lapses_.Forget(session);
  behind_.erase(session);
  gone_.emplace_back(session, static_cast<const Judgment&>(it->second));
  if (gone_.size() > kMostGone) gone_.pop_front();
  entries_.erase(it);
  Touch();
}

void WorkerLedger::SetStep(int64_t step) {
  std::vector<uint64_t> started;
  for (auto it = delayed_.begin(); it != delayed_.end() && it->first <= step; ++it) started.push_back(it->second);
  for (const uint64_t session : started) Leave(session, entries_.at(session));
  step_ = step;
  for (const uint64_t session : started) Enter(session, entries_.at(session));
}

void WorkerLedger::StartOneIfNobodyTakesPart(absl::Time now) {
  if (delayed_waiting_.empty() || CountAll(now) > 0) return;
  const uint64_t session = delayed_waiting_.front();
  Entry& entry = entries_.at(session);
  Leave(session, entry);
  entry.not_before_step = step_;
  Enter(session, entry);
}

void WorkerLedger::OnContributed(uint64_t session, int64_t slots, absl::Duration took) {
  const auto it = entries_.find(session);
  if (it == entries_.end() || slots <= 0) return;
  double& average = it->second.slot_seconds;
  double seconds = absl::ToDoubleSeconds(took) / static_cast<double>(slots);
  if (fastest_ > 0) seconds = std::min(seconds, kSlowest * fastest_);
  const double weight = it->second.contributions++ < kNew ? kFirstWeight : kNewWeight;
  average = average == 0 ? seconds : average * (1 - weight) + seconds * weight;
  int64_t& slow = it->second.slow_contributions;
  slow = fastest_ > 0 && average > kSlow * fastest_ ? slow + 1 : 0;
  Touch();
}

void WorkerLedger::SetPassed(uint64_t session, Entry* entry) {
  if (entry->awaits_token || entry->passed) return;
  Leave(session, *entry);
  entry->passed = true;
  Enter(session, *entry);
  Touch();
}

void WorkerLedger::OnLeaseEnded(uint64_t session) {
  const auto it = entries_.find(session);
  if (it != entries_.end()) SetPassed(session, &it->second);
}

WorkerLedger::Sessions WorkerLedger::OnPassed(const Sessions& sessions) {
  const Sessions behind(behind_.begin(), behind_.end());
  behind_.clear();
  for (const uint64_t session : behind) SetPassed(session, &entries_.at(session));
  for (const uint64_t session : sessions) {
    const auto it = entries_.find(session);
    if (it == entries_.end() || it->second.awaits_token) continue;
    if (it->second.place == kFull) {
      behind_.insert(session);
    } else {
      SetPassed(session, &it->second);
    }
  }
  return behind;
}

double WorkerLedger::Credit(const Judgment& worker) const {
  return std::min(kMostCredit, worker.credit + kAllowance * static_cast<double>(step_ - worker.credit_step));
}

void WorkerLedger::OnStep(uint64_t session, absl::Duration took, bool last, int64_t copies) {
  const auto it = entries_.find(session);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  double gain = 1 - absl::ToDoubleSeconds(took) / entry.seconds_without;
  // Copies that the worker computes as fast as the others are not a loss.
  const double more = entry.place == kFull ? static_cast<double>(copies) / static_cast<double>(slots_) : 0;
  if (gain < 0) gain = last ? std::min(0.0, gain + more) : 0;
  const double credit = std::clamp(Credit(entry) + gain, -kMostDebt, kMostCredit);
  const bool in_debt = credit < 0 && entry.trusted;
  if (in_debt) Leave(session, entry);
  entry.credit = credit;
  entry.credit_step = step_;
  if (!in_debt) return;
  entry.trusted = false;
  entry.place = kBackup;
  Enter(session, entry);
  Touch();
}

void WorkerLedger::RankOne(double fastest, double capacity, Judgment* worker) const {
  const double speed = worker->slot_seconds > 0 ? std::min(1.0, fastest / worker->slot_seconds) : 1;
  const double credit = Credit(*worker);
  const double others = credit >= 0 ? capacity - speed : capacity;
  constexpr double kNobody = 1e-6;
  // Two workers that are slightly slower than the fastest still compute four slots in the time of two.
  constexpr double kEqual = 0.1;
  // With any number of workers, a step takes at least the time of one slot.
  worker->seconds_without = others > kNobody && fastest > 0
                                ? std::max(1.0, std::ceil(static_cast<double>(slots_) / others - kEqual)) * fastest
                                : kUnlimited;
  worker->trusted = others <= kNobody || credit >= 0;
  const bool on_trial = credit >= kGoodCredit && worker->slow_contributions % kTrialEvery < kTrial;
  if (!worker->trusted) {
    worker->place = kBackup;
  } else if (worker->slot_seconds <= kSlow * fastest || on_trial) {
    worker->place = kFull;
  } else {
    worker->place = worker->slot_seconds <= kInTime * worker->seconds_without ? kPart : kBackup;
  }
}

void WorkerLedger::RankAll() {
  if (4 * changes_ <= static_cast<int64_t>(entries_.size())) return;
  changes_ = 0;
  fastest_ = 0;
  for (const auto& [session, entry] : entries_) {
    if (!TakesPart(entry) || entry.silent || entry.slot_seconds == 0) continue;
    if (fastest_ == 0 || entry.slot_seconds < fastest_) fastest_ = entry.slot_seconds;
  }
  double capacity = 0, full = 0;
  for (const auto& [session, entry] : entries_) {
    if (!TakesPart(entry) || entry.silent) continue;
    if (Credit(entry) >= 0) capacity += entry.slot_seconds > 0 ? fastest_ / entry.slot_seconds : 1;
    if (entry.slot_seconds <= kSlow * fastest_) ++full;
  }
  usual_step_ = fastest_ > 0 && full > 0 ? absl::Seconds(std::ceil(static_cast<double>(slots_) / full) * fastest_)
                                         : absl::InfiniteDuration();
  for (auto& [session, entry] : entries_) {
    if (!TakesPart(entry) || entry.silent) continue;
    Judgment next = entry;
    RankOne(fastest_, capacity, &next);
    const bool moves = next.place != entry.place || next.trusted != entry.trusted;
    if (moves) Leave(session, entry);
    static_cast<Judgment&>(entry) = next;
    if (moves) Enter(session, entry);
  }
}

void WorkerLedger::DropLapsed(absl::Time now) {
  while (const auto session = lapses_.PopDue(now)) {
    Entry& entry = entries_.at(*session);
    const absl::Time lapse = entry.heard + patience_;
    if (lapse > now) {  // the worker has been heard from since
      lapses_.Watch(*session, lapse);
      continue;
    }
    Leave(*session, entry);
    entry.lapsed = true;
    Enter(*session, entry);
    Touch();
  }
}

int64_t WorkerLedger::Count(Rank rank, absl::Time now) {
  DropLapsed(now);
  RankAll();
  return taking_part_[rank];
}

int64_t WorkerLedger::CountAll(absl::Time now) {
  DropLapsed(now);
  RankAll();
  return taking_part_[kFull] + taking_part_[kPart] + taking_part_[kBackup];
}

int64_t WorkerLedger::CountAlive(absl::Time now) {
  DropLapsed(now);
  return std::count_if(entries_.begin(), entries_.end(), [this](const auto& worker) {
    const Entry& entry = worker.second;
    return HasStarted(entry) && !entry.left && !entry.silent && (entry.awaits_token || !entry.lapsed);
  });
}

int64_t WorkerLedger::CountTrusted(absl::Time now) {
  DropLapsed(now);
  RankAll();
  return trusted_;
}

absl::optional<absl::Time> WorkerLedger::OtherWaitsSince(uint64_t session) const {
  absl::optional<absl::Time> first;
  for (const Rank rank : {kFull, kPart, kBackup}) {
    auto next = waiting_[rank].begin();
    if (next != waiting_[rank].end() && next->second == session) ++next;
    if (next == waiting_[rank].end()) continue;
    const absl::Time since = entries_.at(next->second).waits_since;
    first = first ? std::min(*first, since) : since;
  }
  return first;
}

void WorkerLedger::PutBack(uint64_t session) {
  const Entry& entry = entries_.at(session);
  waiting_[entry.rank()].insert({-entry.contributed_step, session});
}

WorkerLedger::Next WorkerLedger::TakeNext(Rank rank) {
  Line& line = waiting_[rank];
  const auto first = line.front();
  const uint64_t session = first.second;
  line.erase(first);
  const Entry& entry = entries_.at(session);
  return {session, entry.last_block, entry.last_step, entry.trusted};
}

int64_t WorkerLedger::SlotsInTime(uint64_t session, absl::Duration elapsed) const {
  const Entry& entry = entries_.at(session);
  const double left = kInTime * entry.seconds_without - absl::ToDoubleSeconds(elapsed);
  const double slots = left / entry.slot_seconds;
  return slots >= static_cast<double>(slots_) ? slots_ : std::max<int64_t>(0, static_cast<int64_t>(slots));
}

}  // namespace lockstep

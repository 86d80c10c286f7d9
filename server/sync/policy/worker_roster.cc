#include "lockstep/server/sync/policy/worker_roster.h"

#include <algorithm>
#include <vector>

namespace lockstep {

void WorkerRoster::Enter(uint64_t session, const Entry& entry) {
  if (TakesPart(entry)) ++taking_part_[entry.silent];
  if (HasStarted(entry)) {
    if (entry.waiting) waiting_[entry.silent].insert({-entry.contributed_step, session});
  } else {
    delayed_.insert({entry.not_before_step, session});
    if (entry.waiting) delayed_waiting_.insert(session);
  }
}

void WorkerRoster::Leave(uint64_t session, const Entry& entry) {
  if (TakesPart(entry)) --taking_part_[entry.silent];
  if (HasStarted(entry)) {
    if (entry.waiting) waiting_[entry.silent].erase({-entry.contributed_step, session});
  } else {
    delayed_.erase({entry.not_before_step, session});
    delayed_waiting_.erase(session);
  }
}

void WorkerRoster::Update(uint64_t session, const WorkerState& worker) {
  const auto added = entries_.try_emplace(session);
  Entry& entry = added.first->second;
  Entry next = entry;
  next.waiting = worker.phase() == WorkerState::Phase::kWaiting;
  next.awaits_token = worker.awaits_token();
  next.silent = worker.silent();
  next.left = worker.phase() == WorkerState::Phase::kLeft;
  // One that was started in spite of its delay stays so.
  next.not_before_step = std::min(entry.not_before_step, worker.not_before_step());
  next.contributed_step = worker.contributed_step();
  if (worker.last_token()) next.last_block = worker.last_token()->block;
  if (added.second || entry.heard != worker.heard()) {
    next.heard = worker.heard();
    // Unless it has lapsed, it is watched.
    if (added.second || entry.lapsed) lapses_.Watch(session, next.heard + patience_);
    next.lapsed = false;
  }
  // As after most frames, only the time may have changed; but one taken out of line goes back.
  const bool same = !added.second && !next.waiting && next.StandsAs(entry);
  if (!added.second && !same) Leave(session, entry);
  entry = next;
  if (!same) Enter(session, entry);
}

void WorkerRoster::Remove(uint64_t session) {
  const auto it = entries_.find(session);
  if (it == entries_.end()) return;
  Leave(session, it->second);
  lapses_.Forget(session);
  entries_.erase(it);
}

void WorkerRoster::SetStep(int64_t step) {
  std::vector<uint64_t> started;
  for (auto it = delayed_.begin(); it != delayed_.end() && it->first <= step; ++it) started.push_back(it->second);
  for (const uint64_t session : started) Leave(session, entries_.at(session));
  step_ = step;
  for (const uint64_t session : started) Enter(session, entries_.at(session));
}

void WorkerRoster::StartOneIfNobodyTakesPart(absl::Time now) {
  if (delayed_waiting_.empty() || Count(/*silent=*/false, now) > 0) return;
  const uint64_t session = delayed_waiting_.front();
  Entry& entry = entries_.at(session);
  Leave(session, entry);
  entry.not_before_step = step_;
  Enter(session, entry);
}

int64_t WorkerRoster::Count(bool silent, absl::Time now) {
  while (const auto session = lapses_.PopDue(now)) {
    Entry& entry = entries_.at(*session);
    const absl::Time lapse = entry.heard + patience_;
    if (lapse > now) {  // it was heard of since
      lapses_.Watch(*session, lapse);
      continue;
    }
    Leave(*session, entry);
    entry.lapsed = true;
    Enter(*session, entry);
  }
  return taking_part_[silent];
}

void WorkerRoster::PutBack(uint64_t session) {
  const Entry& entry = entries_.at(session);
  waiting_[entry.silent].insert({-entry.contributed_step, session});
}

absl::optional<WorkerRoster::Next> WorkerRoster::TakeNext(bool silent) {
  if (waiting_[silent].empty()) return absl::nullopt;
  const auto first = waiting_[silent].front();
  const uint64_t session = first.second;
  waiting_[silent].erase(first);
  return Next{session, entries_.at(session).last_block};
}

}  // namespace lockstep

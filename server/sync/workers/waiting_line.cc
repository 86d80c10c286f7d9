#include "lockstep/server/sync/workers/waiting_line.h"

#include <algorithm>

namespace lockstep {

void WaitingLine::Update(uint64_t session, const WorkerState& worker) {
  using Phase = WorkerState::Phase;
  // A silent worker has not read its last token.
  const bool present = !worker.silent() && worker.phase() != Phase::kConnected && worker.phase() != Phase::kLeft;
  if (present) {
    starts_.emplace(session, worker.not_before_step());
  } else {
    starts_.erase(session);
  }
  const bool waits = present && worker.phase() == Phase::kWaiting;
  const auto it = std::find(waiting_.begin(), waiting_.end(), session);
  if (waits && it == waiting_.end()) waiting_.push_back(session);
  if (!waits && it != waiting_.end()) waiting_.erase(it);
}

void WaitingLine::Remove(uint64_t session) {
  starts_.erase(session);
  const auto it = std::find(waiting_.begin(), waiting_.end(), session);
  if (it != waiting_.end()) waiting_.erase(it);
}

std::vector<uint64_t> WaitingLine::Ready(int64_t step) {
  const auto starts_earlier = [this](uint64_t a, uint64_t b) { return starts_.at(a) < starts_.at(b); };
  const auto takes_part = [step](const auto& entry) { return entry.second <= step; };
  if (!waiting_.empty() && std::none_of(starts_.begin(), starts_.end(), takes_part)) {
    starts_.at(*std::min_element(waiting_.begin(), waiting_.end(), starts_earlier)) = step;
  }
  std::vector<uint64_t> ready;
  for (const uint64_t session : waiting_) {
    if (starts_.at(session) <= step) ready.push_back(session);
  }
  return ready;
}

}  // namespace lockstep

#include "lockstep/server/sync/machine/staging_places.h"

#include <algorithm>
#include <utility>

namespace lockstep {

StagingPlaces::Verdict StagingPlaces::Ask(uint64_t session, absl::Time now) {
  const auto [it, asks_first] = contributions_.try_emplace(session);
  Contribution& contribution = it->second;
  contribution.last = now;
  if (!asks_first) return contribution.verdict;
  // If sessions are waiting, a free place goes to the first one in line.
  if (taken_ < places_ && line_.empty()) {
    ++taken_;
    contribution.verdict = Verdict::kStage;
  } else {
    line_.push_back(session);
  }
  return contribution.verdict;
}

void StagingPlaces::LeaveLine(uint64_t session) {
  const auto place = std::find(line_.begin(), line_.end(), session);
  if (place != line_.end()) line_.erase(place);
}

void StagingPlaces::End(uint64_t session) {
  const auto it = contributions_.find(session);
  if (it == contributions_.end()) return;
  if (it->second.verdict == Verdict::kStage) --taken_;
  if (it->second.verdict == Verdict::kWait) LeaveLine(session);
  contributions_.erase(it);
}

std::vector<uint64_t> StagingPlaces::Admit(absl::Time now) {
  std::vector<uint64_t> admitted;
  while (taken_ < places_ && !line_.empty()) {
    ++taken_;
    contributions_[line_.front()] = {Verdict::kStage, now};
    admitted.push_back(line_.front());
    line_.pop_front();
  }
  return admitted;
}

std::vector<uint64_t> StagingPlaces::TakeBack(absl::Time since) {
  std::vector<std::pair<absl::Time, uint64_t>> still;
  if (line_.empty()) return {};
  for (const auto& [session, contribution] : contributions_) {
    if (contribution.verdict == Verdict::kStage && contribution.last <= since) {
      still.emplace_back(contribution.last, session);
    }
  }
  std::sort(still.begin(), still.end());
  still.resize(std::min(still.size(), line_.size()));
  std::vector<uint64_t> taken;
  for (const auto& entry : still) {
    contributions_[entry.second].verdict = Verdict::kDrop;
    --taken_;
    taken.push_back(entry.second);
  }
  return taken;
}

void StagingPlaces::Drop(uint64_t session) {
  LeaveLine(session);
  contributions_[session].verdict = Verdict::kDrop;
}

void StagingPlaces::Touch(absl::Time now) {
  for (auto& entry : contributions_) entry.second.last = now;
}

std::vector<uint64_t> StagingPlaces::Clear() {
  std::vector<uint64_t> waited(line_.begin(), line_.end());
  line_.clear();
  contributions_.clear();
  taken_ = 0;
  return waited;
}

bool StagingPlaces::HasVerdict(uint64_t session, Verdict verdict) const {
  const auto it = contributions_.find(session);
  return it != contributions_.end() && it->second.verdict == verdict;
}

}  // namespace lockstep

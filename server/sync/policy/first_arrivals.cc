#include "lockstep/server/sync/policy/first_arrivals.h"

#include <algorithm>
#include <utility>

namespace lockstep {

FirstArrivalsPolicy::FirstArrivalsPolicy(const Options& options, int64_t step, std::vector<int64_t> positions)
    : options_(options),
      step_(step),
      queue_(static_cast<size_t>(std::max<int64_t>(0, options.initial_tokens)), step),
      streams_(positions),
      positions_(std::move(positions)) {}

StepPolicy::Traits FirstArrivalsPolicy::traits() const {
  Traits traits;
  traits.sums_while_streaming = false;
  traits.commit_voids_tokens = false;
  return traits;
}

void FirstArrivalsPolicy::Update(uint64_t session, const WorkerState& worker) {
  // A silent worker has not taken its last token.
  const bool waits = worker.phase() == WorkerState::Phase::kWaiting && !worker.silent();
  const auto it = std::find(waiting_.begin(), waiting_.end(), session);
  if (waits && it == waiting_.end()) waiting_.push_back(session);
  if (!waits && it != waiting_.end()) waiting_.erase(it);
  new_.Set(session, worker.contributed_step() < 0);
}

void FirstArrivalsPolicy::Remove(uint64_t session) {
  if (const auto it = std::find(waiting_.begin(), waiting_.end(), session); it != waiting_.end()) waiting_.erase(it);
  new_.erase(session);
  streams_.Detach(session);
}

StepPolicy::Assignment FirstArrivalsPolicy::Give(uint64_t session, int64_t step) {
  StepToken token{step, {0, 1}};
  token.batch = streams_.Attach(session);
  return {session, token};
}

StepPolicy::Assignments FirstArrivalsPolicy::Assign(const TokenLeases& leases, absl::Time now) {
  Assignments assignments;
  std::vector<uint64_t> rest;
  for (const uint64_t session : waiting_) {
    if (new_.contains(session)) {
      assignments.push_back(Give(session, step_));
    } else {
      rest.push_back(session);
    }
  }
  const bool stalled = assignments.empty() && !rest.empty() && queue_.empty() && leases.empty();
  if (!stalled) stalled_since_.reset();
  if (stalled && !stalled_since_) stalled_since_ = now;
  if (stalled && now - *stalled_since_ >= options_.lease) queue_.push_back(step_);
  for (const uint64_t session : rest) {
    if (queue_.empty()) break;
    assignments.push_back(Give(session, queue_.front()));
    queue_.pop_front();
    holders_.insert(session);
  }
  return assignments;
}

void FirstArrivalsPolicy::OnReleased(const TokenLease& lease, bool expired) {
  if (holders_.contains(lease.session)) queue_.push_front(step_);
  holders_.erase(lease.session);
  if (expired) streams_.Detach(lease.session);
}

v1::ContributionResult FirstArrivalsPolicy::Judge(const StepToken& token) const {
  // On the wire, a contribution that is stale and one whose batch was taken before have the same name.
  const bool counts = token.step == step_ && taken_ < options_.replicas_to_aggregate && streams_.IsNext(*token.batch);
  return counts ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_DUPLICATE;
}

StepPolicy::Outcome FirstArrivalsPolicy::OnContribution(const Contribution& contribution, absl::Time) {
  if (contribution.counts) ++taken_;
  streams_.Advance(*contribution.token.batch);  // a stale one is spent, too
  holders_.erase(contribution.session);
  return {};
}

bool FirstArrivalsPolicy::Complete(bool summed, absl::Time) {
  return summed && taken_ == options_.replicas_to_aggregate;
}

void FirstArrivalsPolicy::OnCommit(int64_t step, const TokenLeases&) {
  step_ = step;
  taken_ = 0;
  const int64_t tokens = std::max(options_.replicas_to_aggregate, options_.total_replicas);
  queue_.insert(queue_.end(), static_cast<size_t>(tokens), step);
  positions_ = streams_.positions();
}

void FirstArrivalsPolicy::RestartStep() {
  taken_ = 0;
  streams_.Restore(positions_);
}

}  // namespace lockstep

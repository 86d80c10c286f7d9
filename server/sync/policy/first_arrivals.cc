#include "lockstep/server/sync/policy/first_arrivals.h"

#include <algorithm>
#include <utility>

namespace lockstep {

FirstArrivalsPolicy::FirstArrivalsPolicy(const Options& options, int64_t step, std::vector<int64_t> positions)
    : options_(options),
      step_(step),
      queue_(static_cast<size_t>(std::max<int64_t>(0, options.initial_tokens)), step),
      streams_(std::move(positions)) {}

StepPolicy::Traits FirstArrivalsPolicy::traits() const {
  Traits traits;
  traits.sums_while_streaming = false;
  traits.commit_voids_tokens = false;
  return traits;
}

void FirstArrivalsPolicy::Update(uint64_t session, const WorkerState& worker) {
  line_.Update(session, worker);
  new_.Set(session, worker.contributed_step() < 0);
}

void FirstArrivalsPolicy::Remove(uint64_t session) {
  line_.Remove(session);
  new_.erase(session);
  streams_.Detach(session);
}

bool FirstArrivalsPolicy::Give(uint64_t session, int64_t step, Assignments* assignments) {
  const auto batch = streams_.Attach(session);
  if (!batch) return false;
  Assignment assignment{session, {step, {0, 1}}};
  assignment.token.batch = *batch;
  assignments->push_back(assignment);
  return true;
}

StepPolicy::Assignments FirstArrivalsPolicy::Assign(const TokenLeases& leases, absl::Time now) {
  Assignments assignments;
  std::vector<uint64_t> rest;
  for (const uint64_t session : line_.Ready(step_)) {
    if (new_.contains(session)) {
      Give(session, step_, &assignments);
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
    if (!Give(session, queue_.front(), &assignments)) continue;
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
  if (token.step != step_ || taken_ == options_.replicas_to_aggregate) return v1::CONTRIBUTION_STALE;
  return streams_.IsNext(*token.batch) ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_DUPLICATE;
}

StepPolicy::Outcome FirstArrivalsPolicy::OnContribution(const Contribution& contribution, absl::Time) {
  const StepToken& token = contribution.token;
  if (contribution.counts) {
    ++taken_;
    streams_.Advance(*token.batch);
  } else if (Judge(token) == v1::CONTRIBUTION_STALE) {
    // The batch is used up, unless its worker was silent and another one computes it.
    if (streams_.Reads(contribution.session, token.batch->stream)) streams_.Advance(*token.batch);
  } else if (Judge(token) == v1::CONTRIBUTION_ACCEPTED && holders_.contains(contribution.session)) {
    queue_.push_front(step_);
  }
  holders_.erase(contribution.session);
  return {};
}

bool FirstArrivalsPolicy::OnInputEnded(uint64_t session) {
  streams_.End(session);
  return streams_.all_ended();
}

bool FirstArrivalsPolicy::Complete(bool summed, absl::Time) {
  return summed && taken_ == options_.replicas_to_aggregate;
}

void FirstArrivalsPolicy::OnCommit(int64_t step, const TokenLeases&) {
  step_ = step;
  taken_ = 0;
  const int64_t tokens = std::max(options_.replicas_to_aggregate, options_.total_replicas);
  queue_.insert(queue_.end(), static_cast<size_t>(tokens), step);
  streams_.Commit();
}

void FirstArrivalsPolicy::RestartStep() {
  taken_ = 0;
  streams_.Rollback();
}

}  // namespace lockstep

#include "lockstep/server/sync/policy/async.h"

#include <algorithm>
#include <utility>

namespace lockstep {

AsyncPolicy::AsyncPolicy(const Options& options, int64_t step, std::vector<int64_t> positions)
    : options_(options), step_(step), streams_(std::move(positions)) {}

StepPolicy::Traits AsyncPolicy::traits() const {
  Traits traits;
  traits.sums_while_streaming = false;
  traits.commit_voids_tokens = false;
  return traits;
}

void AsyncPolicy::Detach(uint64_t session) {
  streams_.Detach(session);
  contributed_.erase(session);
}

void AsyncPolicy::Remove(uint64_t session) {
  line_.Remove(session);
  Detach(session);
}

int64_t AsyncPolicy::Slowest() const {
  const auto contributed_less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto slowest = std::min_element(contributed_.begin(), contributed_.end(), contributed_less);
  return slowest == contributed_.end() ? 0 : slowest->second;
}

StepPolicy::Assignments AsyncPolicy::Assign(const TokenLeases&, absl::Time) {
  Assignments ready;
  for (const uint64_t session : line_.Ready(step_)) {
    const auto batch = streams_.Attach(session);
    if (!batch) continue;  // the input has ended
    contributed_.emplace(session, Slowest());
    Assignment assignment{session, {step_, {0, 1}}};
    assignment.token.batch = *batch;
    ready.push_back(assignment);
  }
  if (!options_.max_staleness) return ready;
  const int64_t most = Slowest() + *options_.max_staleness;
  const auto is_ahead = [&](const Assignment& assignment) { return contributed_.at(assignment.session) > most; };
  ready.erase(std::remove_if(ready.begin(), ready.end(), is_ahead), ready.end());
  return ready;
}

void AsyncPolicy::OnReleased(const TokenLease& lease, bool expired) {
  if (expired) Detach(lease.session);
}

v1::ContributionResult AsyncPolicy::Judge(const StepToken& token) const {
  return streams_.IsNext(*token.batch) ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_DUPLICATE;
}

StepPolicy::Outcome AsyncPolicy::OnContribution(const Contribution& contribution, absl::Time) {
  if (!contribution.counts) return {};
  streams_.Advance(*contribution.token.batch);
  const auto worker = contributed_.find(contribution.session);
  if (worker != contributed_.end()) ++worker->second;
  return {};
}

bool AsyncPolicy::OnInputEnded(uint64_t session) {
  streams_.End(session);
  contributed_.erase(session);
  return streams_.all_ended();
}

void AsyncPolicy::OnCommit(int64_t step, const TokenLeases&) {
  step_ = step;
  streams_.Commit();
}

}  // namespace lockstep

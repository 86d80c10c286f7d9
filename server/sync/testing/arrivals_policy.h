#ifndef LOCKSTEP_SERVER_SYNC_TESTING_ARRIVALS_POLICY_H_
#define LOCKSTEP_SERVER_SYNC_TESTING_ARRIVALS_POLICY_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/workers/flat_set.h"

namespace lockstep {

// A test policy that differs from the deterministic one as much as the interface allows. Each session has an input
// stream, and gets a token whenever it waits. The first `wanted` contributions complete a step, and a commit leaves all
// other tokens valid; if `wanted` is 1, every contribution that counts is committed as a step. A contribution counts if
// it was computed with the values of one of the last `newest` steps.
class ArrivalsPolicy : public StepPolicy {
 public:
  ArrivalsPolicy(int64_t wanted, int64_t newest, int64_t step) : wanted_(wanted), newest_(newest), step_(step) {}

  Traits traits() const override {
    Traits traits;
    traits.sums_while_streaming = false;
    traits.commit_voids_tokens = false;
    return traits;
  }
  void Update(uint64_t session, const WorkerState& worker) override {
    waiting_.Set(session, worker.phase() == WorkerState::Phase::kWaiting && !worker.silent());
  }
  void Remove(uint64_t session) override { waiting_.erase(session); }
  Assignments Assign(const TokenLeases&, absl::Time) override {
    Assignments assignments;
    for (const uint64_t session : waiting_) {
      StepToken token{step_, {0, 1}};
      token.batch = BatchAddress{static_cast<int64_t>(session), positions_[session]};
      assignments.push_back({session, token});
    }
    return assignments;
  }
  v1::ContributionResult Judge(const StepToken& token) const override {
    const bool counts = taken_ < wanted_ && step_ - token.values_step < newest_;
    return counts ? v1::CONTRIBUTION_ACCEPTED : v1::CONTRIBUTION_DUPLICATE;
  }
  Outcome OnContribution(const Contribution& contribution, absl::Time) override {
    if (contribution.counts) ++taken_;
    ++positions_[contribution.session];  // a batch that does not count is used up too
    return {};
  }
  bool Complete(bool summed, absl::Time) override { return summed && taken_ == wanted_; }
  void OnCommit(int64_t step, const TokenLeases&) override {
    step_ = step;
    taken_ = 0;
  }
  void RestartStep() override { taken_ = 0; }

 private:
  const int64_t wanted_, newest_;
  int64_t step_;
  int64_t taken_ = 0;
  FlatSet<uint64_t> waiting_;
  std::map<uint64_t, int64_t> positions_;  // of each session's stream
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_TESTING_ARRIVALS_POLICY_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_ASYNC_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_ASYNC_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/policy/stream_table.h"
#include "lockstep/server/sync/workers/waiting_line.h"

namespace lockstep {

// Asynchronous training: each contribution makes a step as soon as it is whole. Each worker has an input stream. It
// computes with the newest values at the time when its token is sent. Each batch counts once: of several contributions
// to one batch, the policy takes the first.
//
// With a bound on the staleness, a worker whose contributions since it joined are more than that ahead of the slowest
// worker's waits. A worker that joins starts level with the slowest one. A silent worker holds up no other. Pure; not
// thread-safe.
class AsyncPolicy : public StepPolicy {
 public:
  struct Options {
    // Contributions that a worker may be ahead of the slowest one; no bound if absent.
    absl::optional<int64_t> max_staleness;
  };

  // `positions`: of the streams, in the checkpoint of `step`.
  AsyncPolicy(const Options& options, int64_t step, std::vector<int64_t> positions = {});

  Traits traits() const override;
  void Update(uint64_t session, const WorkerState& worker) override { line_.Update(session, worker); }
  void Remove(uint64_t session) override;
  Assignments Assign(const TokenLeases& leases, absl::Time now) override;
  void OnReleased(const TokenLease& lease, bool expired) override;
  v1::ContributionResult Judge(const StepToken& token) const override;
  Outcome OnContribution(const Contribution& contribution, absl::Time now) override;
  bool OnInputEnded(uint64_t session) override;
  bool Complete(bool summed, absl::Time now) override { return summed; }
  void OnCommit(int64_t step, const TokenLeases& leases) override;
  void RestartStep() override { streams_.Rollback(); }
  std::vector<int64_t> stream_positions() const override { return streams_.positions(); }

 private:
  void Detach(uint64_t session);
  // The fewest contributions of a worker that has a stream; 0 without one.
  int64_t Slowest() const;

  const Options options_;
  int64_t step_;
  StreamTable streams_;
  WaitingLine line_;
  // The contributions of each session that has a stream, since it joined, plus those of the slowest at that time.
  std::map<uint64_t, int64_t> contributed_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_ASYNC_H_

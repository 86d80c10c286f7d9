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

// Asynchronous training: each contribution becomes a step of its own as soon as it is complete. Each worker has an
// input stream, and computes with the values that are newest when its token is sent. Each batch counts once: if there
// are several contributions to one batch, the policy accepts the first.
//
// If staleness is bounded, a worker waits while it is more contributions ahead of the slowest worker than the bound
// allows. A worker that joins starts level with the slowest one. A silent worker does not hold up the others. Pure; not
// thread-safe.
class AsyncPolicy : public StepPolicy {
 public:
  struct Options {
    // Maximum number of contributions by which a worker may be ahead of the slowest one. Unbounded if absent.
    absl::optional<int64_t> max_staleness;
  };

  // `positions` are the streams' positions in the checkpoint of `step`.
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
  // Returns the lowest contribution count of a worker that has a stream; 0 if there is none.
  int64_t Slowest() const;

  const Options options_;
  int64_t step_;
  StreamTable streams_;
  WaitingLine line_;
  // For each session that has a stream, the number of its contributions since it joined, plus the slowest worker's
  // number at that time.
  std::map<uint64_t, int64_t> contributed_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_ASYNC_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_FIRST_ARRIVALS_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_FIRST_ARRIVALS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/policy/step_policy.h"
#include "lockstep/server/sync/policy/stream_table.h"
#include "lockstep/server/sync/workers/flat_set.h"
#include "lockstep/server/sync/workers/waiting_line.h"

namespace lockstep {

// The policy of TensorFlow's SyncReplicasOptimizer: the first R contributions whose tokens carry the current step form
// an update, and all others are stale. A worker that has contributed takes a token from a queue, and waits if the queue
// is empty. Every update adds max(R, T) tokens that carry its step, no matter what has become of earlier ones. Each
// worker has an input stream, and computes with the values that are newest when its token is sent. These may be newer
// than the token.
//
// Unlike in TensorFlow, the token of a worker that is gone or silent returns to the queue with the current step, and
// another worker computes the batch of that worker's stream. When no token is left, neither in the queue nor held by a
// worker, and workers have waited for the duration of a lease, they get a token of the current step; in TensorFlow,
// they would wait forever. The run ends when all streams have ended. Pure; not thread-safe.
class FirstArrivalsPolicy : public StepPolicy {
 public:
  struct Options {
    int64_t replicas_to_aggregate = 1;  // R
    int64_t total_replicas = 1;         // T
    int64_t initial_tokens = 1;         // at least R - T
    absl::Duration lease = absl::Seconds(5);
  };

  // `positions` are the streams' positions in the checkpoint of `step`.
  FirstArrivalsPolicy(const Options& options, int64_t step, std::vector<int64_t> positions = {});

  Traits traits() const override;
  void Update(uint64_t session, const WorkerState& worker) override;
  void Remove(uint64_t session) override;
  Assignments Assign(const TokenLeases& leases, absl::Time now) override;
  void OnReleased(const TokenLease& lease, bool expired) override;
  v1::ContributionResult Judge(const StepToken& token) const override;
  Outcome OnContribution(const Contribution& contribution, absl::Time now) override;
  bool OnInputEnded(uint64_t session) override;
  bool Complete(bool summed, absl::Time now) override;
  void OnCommit(int64_t step, const TokenLeases& leases) override;
  void RestartStep() override;
  std::vector<int64_t> stream_positions() const override { return streams_.positions(); }

  int64_t num_tokens() const { return static_cast<int64_t>(queue_.size()); }

 private:
  // Assigns a token that carries `step` to a waiting worker. Returns false if the input has no stream for the worker.
  bool Give(uint64_t session, int64_t step, Assignments* assignments);

  const Options options_;
  int64_t step_;
  int64_t taken_ = 0;          // contributions to the current step
  std::deque<int64_t> queue_;  // the step of each token, oldest first
  StreamTable streams_;
  WaitingLine line_;
  // Sessions that have not contributed yet.
  FlatSet<uint64_t> new_;
  // Sessions that hold a token from the queue.
  FlatSet<uint64_t> holders_;
  // The time since which no session has held a token and the queue has been empty.
  absl::optional<absl::Time> stalled_since_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_FIRST_ARRIVALS_H_

#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_STEP_RATES_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_STEP_RATES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/step/step_frame.h"
#include "lockstep/server/sync/workers/worker_identity.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/status.pb.h"
#include "lockstep/v1/watch.pb.h"

namespace lockstep {

// The counters and rates that a status shows for the run and for each connected worker. Rates are measured from a mark
// that moves every few seconds, so that they are recent. Pure; not thread-safe.
class StepRates {
 public:
  StepRates(int64_t step, absl::Time now);

  void AddWorker(uint64_t session, const WorkerIdentity& identity);
  void RemoveWorker(uint64_t session) { workers_.erase(session); }

  // Counts a message of this many bytes. A message of a worker that has left counts only for the run.
  void OnReceived(uint64_t session, int64_t bytes, WirePath path = WirePath::kTcp);
  void OnSent(uint64_t session, int64_t bytes, WirePath path = WirePath::kTcp);
  void OnContributed(uint64_t session, v1::ContributionResult result, absl::Duration took);
  // Counts a refused frame like a rejected contribution.
  void OnRejected(uint64_t session);
  // Records the learning rate of the update that begins.
  void OnBegun(float learning_rate) { learning_rate_ = learning_rate; }
  void OnCommitted(double mean_loss) { loss_ = mean_loss; }
  // Counts a step that changed nothing. Returns the number of such steps.
  int64_t OnSkipped() { return ++skipped_; }
  // Must be called regularly.
  void MoveMarks(int64_t step, absl::Time now);

  // Fills in global_step, loss, the rates and the counters.
  void FillRun(int64_t step, absl::Time now, v1::RunStatus* status) const;
  // Fills in the bytes of all workers, including those that are gone.
  void FillCounters(v1::RunCounters* counters) const;
  // Fills in name, session_id and the counters of a worker.
  void FillWorker(uint64_t session, v1::WorkerStatus* status) const;

 private:
  struct Mark {
    absl::Time time;
    int64_t step = 0;
    int64_t bytes_received = 0;
    int64_t bytes_sent = 0;
  };
  struct Bytes {
    int64_t received = 0;
    int64_t sent = 0;
  };
  // Returns null if the worker is gone.
  v1::WorkerStatus* Find(uint64_t session);

  std::map<uint64_t, v1::WorkerStatus> workers_;
  absl::optional<double> loss_;
  float learning_rate_ = 0;
  int64_t accepted_ = 0;
  int64_t duplicate_ = 0;
  int64_t rejected_ = 0;
  int64_t stale_ = 0;
  int64_t skipped_ = 0;
  Mark totals_;  // over all workers, including those that are gone; without time and step
  Mark marks_[2];
  Bytes paths_[3];  // by WirePath, over all workers, including those that are gone
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_STEP_RATES_H_

#ifndef LOCKSTEP_SERVER_SYNC_WORKERS_STEP_RATES_H_
#define LOCKSTEP_SERVER_SYNC_WORKERS_STEP_RATES_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/server/sync/workers/worker_identity.h"
#include "lockstep/server/sync/workers/worker_state.h"
#include "lockstep/v1/chief.pb.h"
#include "lockstep/v1/status.pb.h"

namespace lockstep {

// What people are shown of the steps: counters and rates of the run and of each connected worker. Rates are since a
// mark that moves on every few seconds, so that they are recent ones. Pure; not thread-safe.
class StepRates {
 public:
  StepRates(int64_t step, absl::Time now);

  void AddWorker(uint64_t session, const WorkerIdentity& identity);
  void RemoveWorker(uint64_t session) { workers_.erase(session); }

  // A message of this many bytes. That of a worker that is gone counts for the run.
  void OnReceived(uint64_t session, int64_t bytes);
  void OnSent(uint64_t session, int64_t bytes);
  void OnContributed(uint64_t session, v1::ContributionResult result, absl::Duration took);
  // A frame was refused; counted like a contribution that is rejected.
  void OnRejected(uint64_t session);
  // The update from the global step began.
  void OnBegun(float learning_rate) { learning_rate_ = learning_rate; }
  void OnCommitted(double mean_loss) { loss_ = mean_loss; }
  // The step that was committed last only counts. Returns how many there were.
  int64_t OnSkipped() { return ++skipped_; }
  // To be called now and then.
  void MoveMarks(int64_t step, absl::Time now);

  // Fills global_step, loss, the rates and the counters.
  void FillRun(int64_t step, absl::Time now, v1::RunStatus* status) const;
  // Fills name, session_id and the counters of a worker.
  void FillWorker(uint64_t session, v1::WorkerStatus* status) const;

 private:
  struct Mark {
    absl::Time time;
    int64_t step = 0;
    int64_t bytes_received = 0;
    int64_t bytes_sent = 0;
  };
  // Null when it is gone.
  v1::WorkerStatus* Find(uint64_t session);

  std::map<uint64_t, v1::WorkerStatus> workers_;
  absl::optional<double> loss_;
  float learning_rate_ = 0;
  int64_t accepted_ = 0;
  int64_t duplicate_ = 0;
  int64_t rejected_ = 0;
  int64_t stale_ = 0;
  int64_t skipped_ = 0;
  Mark totals_;  // over all workers, those that are gone too; without time and step
  Mark marks_[2];
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_WORKERS_STEP_RATES_H_

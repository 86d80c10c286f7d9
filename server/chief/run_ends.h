#ifndef LOCKSTEP_SERVER_CHIEF_RUN_ENDS_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_ENDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/server/chief/run_state.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// The end of a run: after its last step, a failure, a request, or a stop of the chief. Thread-safe.
class RunEnds {
 public:
  // `run` must outlive this.
  explicit RunEnds(RunState* run) : run_(run) {}

  // Blocks until the run ends. Returns:
  //   OK: the last step is applied and saved, and the workers have been notified.
  //   the run's error: the run failed. If a contribution was not finite, the last step is saved too.
  //   Cancelled: RequestStop was called. No further step is committed, and the last one was saved immediately; the
  //     message says where.
  //   a file system error: the last step could not be saved.
  //   DeadlineExceeded: the disk has not stored the last step within checkpoint.stop_seconds of RequestStop. The caller
  //     must then exit the process, because the destructor would wait for the disk.
  //   FailedPrecondition: another chief has taken over the logdir, or a worker showed that it is the wrong one
  //     (run_identity.h). Nothing more is saved there.
  // Unless stopped, waits up to two seconds for workers to disconnect, then serves for cluster.linger_seconds so that
  // workers that start after the run has finished or failed learn the outcome; RequestStop ends that.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Makes Wait return. May be called from any thread. Only the first call has an effect.
  void RequestStop() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Like RequestStop, but has no effect if the run is over: its end is then completed, including the wait for late
  // workers.
  void RequestStopUnlessOver() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Finishes the run as soon as the step in progress is committed, or as soon as no worker is computing it. Wait then
  // returns OK after the save. Records the end first, so that no later incarnation trains past it. Errors:
  //   FailedPrecondition: the model is not known yet
  //   Cancelled: RequestStop was called
  //   the run's failure, if it has failed
  //   an error of the file system: the run continues
  //   Unknown: the disk has not confirmed the record. This incarnation ends the run; another one may continue it,
  //     unless the record can be written before the last step is saved.
  // Records the first 1024 bytes of `reason`, as UTF-8. `last_state` is null unless the run is followed. It becomes the
  // followers' state once the end is, or may be, recorded, and before the last step is saved.
  absl::Status RequestFinish(const std::string& reason, const v1::SessionState* last_state = nullptr)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Ends the event file once the program will add no more summaries. Does nothing if another chief has taken over the
  // logdir.
  void EndFollowersEvents() ABSL_LOCKS_EXCLUDED(run_->mutex);

 private:
  // Blocks until a worker's request to finish the run is due, and returns its reason. Returns nullopt once the run is
  // over or a stop is requested.
  absl::optional<std::string> AwaitFinishRequest() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Tries to finish the run for that request. If the end cannot be recorded, reports that.
  void CarryOutFinishRequest(const std::string& reason) ABSL_LOCKS_EXCLUDED(run_->mutex);
  void RequestStopLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->mutex);
  // Saves the last step unless it may be wrong. Returns the result of the run.
  absl::Status SaveLast(Training* training) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Completes a run that has finished or failed: saves the last step, notifies the workers and lingers.
  absl::Status FinishRun(Training* training) ABSL_LOCKS_EXCLUDED(run_->mutex);
  void AwaitGoodbyes(const SyncReplicas& replicas) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Records that the run has finished, after all workers have been notified.
  void NoteFinished() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Keeps serving for cluster.linger_seconds. Returns false if that is zero, or if RequestStop cuts it short.
  bool Linger() ABSL_LOCKS_EXCLUDED(run_->mutex);

  RunState* const run_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_ENDS_H_

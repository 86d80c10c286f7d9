#ifndef LOCKSTEP_SERVER_CHIEF_RUN_ENDS_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_ENDS_H_

#include <string>

#include "absl/status/status.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/server/chief/run_state.h"
#include "lockstep/server/chief/training.h"
#include "lockstep/server/sync/sync_replicas.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep {

// How a run ends: by its last step, a failure, a request, or a stop of the chief. Thread-safe.
class RunEnds {
 public:
  // `run` must outlive this.
  explicit RunEnds(RunState* run) : run_(run) {}

  // Blocks until the last step is applied and saved and the workers have been notified (OK), the run failed (its error;
  // after a contribution that is not finite the last step is saved as well), or RequestStop was called: then no further
  // step is committed, and the last one is saved at once (Cancelled; its message says where). Workers that do not say
  // goodbye are waited for two seconds, and cluster.linger_seconds are stayed for those that start after the end;
  // RequestStop ends that. Errors of saving: those of the files, or DeadlineExceeded when the disk has not taken the
  // step within checkpoint.stop_seconds of RequestStop. After that one end the process: destroying the chief would wait
  // for the disk. FailedPrecondition when another chief was found to have taken over the logdir, or a worker showed
  // that it is the wrong one (run_identity.h): nothing is saved there any more.
  absl::Status Wait() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Makes Wait return; callable from any thread. Only the first call counts.
  void RequestStop() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Does the same unless the run is over: then its end is completed, including the wait for late workers.
  void RequestStopUnlessOver() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Finishes the run as soon as the step in progress is committed, or no worker is at it: Wait returns OK after the
  // save. Records the step first, so that no later life goes beyond it. Errors:
  //   FailedPrecondition: the model is not known yet
  //   Cancelled: RequestStop was called
  //   the failure of the run, if it has failed
  //   an error of the file system: the run continues
  //   Unknown: the disk has not said whether it has the record. This life ends the run; another one may continue it,
  //     unless the record can be written before the last step is saved.
  // Records the first 1024 bytes of `reason`, as UTF-8. `last_state` is null unless the run is followed. It becomes the
  // followers' state once the record has the end, or may have it, and before the last step is saved.
  absl::Status RequestFinish(const std::string& reason, const v1::SessionState* last_state = nullptr)
      ABSL_LOCKS_EXCLUDED(run_->mutex);
  // The program has no summary to add any more: the event file ends, unless the logdir is another chief's by now.
  void EndFollowersEvents() ABSL_LOCKS_EXCLUDED(run_->mutex);

 private:
  void RequestStopLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(run_->mutex);
  // Saves the last step unless it may be wrong. Returns the result of the run.
  absl::Status SaveLast(Training* training) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // The run is over: saves, notifies the workers and lingers.
  absl::Status FinishRun(Training* training) ABSL_LOCKS_EXCLUDED(run_->mutex);
  void AwaitGoodbyes(const SyncReplicas& replicas) ABSL_LOCKS_EXCLUDED(run_->mutex);
  // The run has ended well, and all know.
  void NoteFinished() ABSL_LOCKS_EXCLUDED(run_->mutex);
  // Lets the server answer for cluster.linger_seconds more; false when there are none or RequestStop ends them.
  bool Linger() ABSL_LOCKS_EXCLUDED(run_->mutex);

  RunState* const run_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_ENDS_H_

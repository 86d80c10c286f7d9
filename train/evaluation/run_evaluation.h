#ifndef LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATION_H_
#define LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep::train {

struct RunEvaluationOptions {
  // The run's logdir, written by its chief or copied from elsewhere. It need not exist yet.
  std::string logdir;
  // The time between two checks of the logdir.
  absl::Duration period = absl::Seconds(1);
  // Lets another thread end the call. May be null. `stop`, `clock` and `fs` must outlive the call.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

// Does the work of an evaluator task: evaluates each new checkpoint of a run according to the run's configuration,
// writes the metrics to the "eval" directory of the logdir, and logs them. Returns after evaluating the checkpoint of
// the last step, or the final checkpoint of a run that ended early. Logs and skips damaged checkpoints. Errors: those
// of RunWatcher; Cancelled if the process was stopped.
absl::Status EvaluateRun(const RunEvaluationOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATION_H_

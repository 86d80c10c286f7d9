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
  // The run's logdir, from its chief or from elsewhere. It need not exist yet.
  std::string logdir;
  // The time between two checks of the logdir.
  absl::Duration period = absl::Seconds(1);
  // If null, nothing stops the call from outside. These three must outlive the call.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

// Does the work of an evaluator task: evaluates each new checkpoint of a run as the run's configuration says, writes
// the metrics to the logdir's "eval" and logs them. Returns when the checkpoint of the last step is evaluated, or the
// one with which the run was ended early. Logs and skips a damaged checkpoint. Errors: those of RunWatcher; Cancelled
// if the process was stopped.
absl::Status EvaluateRun(const RunEvaluationOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATION_H_

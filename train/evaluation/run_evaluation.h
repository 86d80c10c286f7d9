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
  // The run's, from its chief or from elsewhere; it need not exist yet.
  std::string logdir;
  // Between two looks at it.
  absl::Duration period = absl::Seconds(1);
  // null: nothing is stopped from outside. These three outlive the call.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

// What a task does that is an evaluator: evaluates each new checkpoint of a run as the run's configuration says, writes
// the metrics to the logdir's "eval" and logs them, until the checkpoint of the last step is evaluated, or that with
// which the run was ended early. A damaged checkpoint is logged and skipped. Errors: those of RunWatcher; Cancelled
// when the process was told to stop.
absl::Status EvaluateRun(const RunEvaluationOptions& options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_RUN_EVALUATION_H_

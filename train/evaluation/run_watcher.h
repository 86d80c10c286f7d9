#ifndef LOCKSTEP_TRAIN_EVALUATION_RUN_WATCHER_H_
#define LOCKSTEP_TRAIN_EVALUATION_RUN_WATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/train/evaluation/recorded_run.h"
#include "lockstep/train/evaluation/run_evaluator.h"

namespace lockstep {

// Evaluates each new checkpoint of a run that is in progress, or has not begun yet, and writes the metrics to the
// events in the logdir's "eval", or "eval_NAME" for a split that is not the configuration's. Not thread-safe.
class RunWatcher {
 public:
  struct Options {
    // Must outlive the watcher.
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    RecordedRunFlags run;
    // Empty: the configuration's.
    std::string split;
    // A checkpoint counts when it is at least this many steps after the previous one, or of the last step.
    int64_t every_steps = 0;
    std::function<void(const std::string& split, const RunEvaluator::Evaluation& evaluation)> report;
    // Called before each batch; true ends RunOnce with Cancelled. May be null.
    std::function<bool()> cancelled;
  };
  explicit RunWatcher(Options options);

  // Looks once; evaluates the newest checkpoint if it is a new one. True when it was that of the last
  // step. Errors: those of RunEvaluator; a run that does not exist yet is no error, nor is a checkpoint that has gone
  // meanwhile or was saved again, which the next look takes. A checkpoint that failed is skipped from then on.
  absl::StatusOr<bool> RunOnce();

  // Whether data and model were loaded: an error after that is the checkpoint's.
  bool prepared() const { return evaluator_ != nullptr; }

 private:
  absl::Status Prepare(const config::v1::RunSpec& config);
  // Distinguishes a checkpoint from another with the same prefix. Errors: those of the file.
  absl::StatusOr<std::string> Identity(const std::string& prefix) const;

  const Options options_;
  std::unique_ptr<RunEvaluator> evaluator_;
  std::shared_ptr<EventWriter> events_;
  // The checkpoint that was evaluated last, or failed, and the step of the last that was evaluated.
  std::string evaluated_;
  int64_t step_ = 0;
};

// The scalars, for TensorBoard; flushed.
void WriteEvaluation(const RunEvaluator::Evaluation& evaluation, EventWriter* events);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_RUN_WATCHER_H_

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

// A watcher that evaluates each new checkpoint of a run that is in progress or has not begun yet. Writes the metrics as
// events to "eval" in the logdir, or to "eval_NAME" for a split other than the configuration's. Not thread-safe.
class RunWatcher {
 public:
  struct Options {
    // Must outlive the watcher.
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    RecordedRunFlags run;
    // If empty, uses the configuration's split.
    std::string split;
    // The minimum number of steps between evaluated checkpoints. The last step's checkpoint is always evaluated.
    int64_t every_steps = 0;
    std::function<void(const std::string& split, const RunEvaluator::Evaluation& evaluation)> report;
    // Called before each batch. If it returns true, RunOnce ends with Cancelled. May be null.
    std::function<bool()> cancelled;
  };
  explicit RunWatcher(Options options);

  // Checks once, and evaluates the newest checkpoint if it is new. Returns true once the checkpoint of the last step
  // has been evaluated. Errors: those of RunEvaluator. It is not an error if the run does not exist yet, or if a
  // checkpoint was meanwhile removed or saved again; the next check handles that. A checkpoint whose evaluation failed
  // is not evaluated again.
  absl::StatusOr<bool> RunOnce();

  // Returns true once the data and the model have been loaded. Later errors are then due to a checkpoint.
  bool prepared() const { return evaluator_ != nullptr; }

 private:
  absl::Status Prepare(const config::v1::RunSpec& config);
  // Returns a string that distinguishes a checkpoint from others with the same prefix. Errors: those of reading the
  // file.
  absl::StatusOr<std::string> Identity(const std::string& prefix) const;

  const Options options_;
  std::unique_ptr<RunEvaluator> evaluator_;
  std::shared_ptr<EventWriter> events_;
  // The last checkpoint that was evaluated or failed, and the step of the last evaluated one.
  std::string evaluated_;
  int64_t step_ = 0;
};

// Writes the metrics as scalars for TensorBoard and flushes them.
void WriteEvaluation(const RunEvaluator::Evaluation& evaluation, EventWriter* events);

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_RUN_WATCHER_H_

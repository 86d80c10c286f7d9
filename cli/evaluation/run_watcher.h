#ifndef LOCKSTEP_CLI_EVALUATION_RUN_WATCHER_H_
#define LOCKSTEP_CLI_EVALUATION_RUN_WATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/evaluation/recorded_run.h"
#include "cli/evaluation/run_evaluator.h"
#include "common/base/clock.h"
#include "common/io/file_system.h"
#include "common/summary/event_writer.h"

namespace lockstep {

// Evaluates each new checkpoint of a run that goes on, or has not begun yet, and writes the metrics to the events in
// the logdir's "eval", or "eval_NAME" for a split that is not the configuration's. Not thread-safe.
class RunWatcher {
 public:
  struct Options {
    // Must outlive the watcher.
    FileSystem* fs = nullptr;
    Clock* clock = nullptr;
    RecordedRunFlags run;
    // Empty: the configuration's.
    std::string split;
    // A checkpoint counts when it is so many steps after the one before, or of the last step.
    int64_t every_steps = 0;
    std::function<void(const std::string& split, const RunEvaluator::Evaluation& evaluation)> report;
    // Asked before each batch; true ends RunOnce with Cancelled. May be null.
    std::function<bool()> cancelled;
  };
  explicit RunWatcher(Options options);

  // Looks once; evaluates the newest checkpoint when it is another than before. True when it was that of the last
  // step. Errors: those of RunEvaluator; a run that is not there yet is none, nor a checkpoint that has gone meanwhile
  // or was saved again, which the next look takes. A checkpoint that failed is passed over from then on.
  absl::StatusOr<bool> RunOnce();

  // Whether data and model are there: an error after that is the checkpoint's.
  bool prepared() const { return evaluator_ != nullptr; }

 private:
  absl::Status Prepare(const RunConfig& config);
  // What tells a checkpoint from another with the same prefix. Errors: those of the file.
  absl::StatusOr<std::string> Identity(const std::string& prefix) const;

  const Options options_;
  std::unique_ptr<RunEvaluator> evaluator_;
  std::unique_ptr<EventWriter> events_;
  // The checkpoint that was evaluated last, or failed, and the step of the last that was evaluated.
  std::string evaluated_;
  int64_t step_ = 0;
};

// The scalars, for TensorBoard; flushed.
void WriteEvaluation(const RunEvaluator::Evaluation& evaluation, EventWriter* events);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_EVALUATION_RUN_WATCHER_H_

#ifndef LOCKSTEP_CLI_RUN_WATCHER_H_
#define LOCKSTEP_CLI_RUN_WATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/recorded_run.h"
#include "cli/run_evaluator.h"
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
  };
  explicit RunWatcher(Options options);

  // Looks once; evaluates the newest checkpoint when it is another than before. True when it was that of the last
  // step. Errors: those of RunEvaluator; a run that is not there yet is none, nor a checkpoint that has gone meanwhile.
  absl::StatusOr<bool> RunOnce();

 private:
  absl::Status Prepare(const RunConfig& config);

  const Options options_;
  std::unique_ptr<RunEvaluator> evaluator_;
  std::unique_ptr<EventWriter> events_;
  // The checkpoint that was evaluated last, and its step.
  std::string evaluated_;
  int64_t step_ = 0;
};

// The scalars, for TensorBoard; flushed.
void WriteEvaluation(const RunEvaluator::Evaluation& evaluation, EventWriter* events);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_RUN_WATCHER_H_

#ifndef LOCKSTEP_TRAIN_SLIM_EVALUATION_H_
#define LOCKSTEP_TRAIN_SLIM_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/evaluation/checkpoints_iterator.h"
#include "lockstep/train/evaluation/run_evaluator.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/end/stop_signal.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train::slim {

// A checkpoint of a run, its global step and its metrics.
using Evaluation = RunEvaluator::Evaluation;

// The arguments of tf_slim.evaluation.evaluate_once that have a counterpart. Except for `op`, the model and data come
// from the run whose logdir has the checkpoint.
struct EvaluateOptions {
  // The number of batches to evaluate, starting at the split's first example. They have the run's batch size. If
  // absent, the whole split is evaluated.
  absl::optional<int64_t> num_evals;
  // If empty, the configuration's split.
  std::string split;
  // Provides the model if the run's program makes it with make_workload or transform_model. Its configuration is
  // ignored. If absent, the model comes from the run's configuration.
  absl::optional<TrainOp> op;
  // The names of the metrics. If empty, the configuration's.
  std::vector<std::string> eval_op;
  // Default: writes each metric as a scalar. None: writes no summaries.
  Choice<std::function<v1::Summary(const Evaluation& evaluation)>> summary_op;
  // Called with each evaluation. The first error ends the evaluation and is returned.
  std::vector<std::function<absl::Status(const Evaluation& evaluation)>> hooks;
  // Ends waits and evaluations with Cancelled. May be null. `stop`, `clock` and `fs` must outlive the call.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

// Evaluates a checkpoint once. Unless `logdir` is empty, writes the summaries to its events at the checkpoint's global
// step. Errors: InvalidArgument if the checkpoint does not exist or does not belong to a run, or if num_evals is below
// 1; those of RunEvaluator.
absl::StatusOr<Evaluation> EvaluateOnce(const std::string& checkpoint_path, const std::string& logdir,
                                        const EvaluateOptions& options = {});

// The arguments of tf_slim.evaluation.evaluation_loop.
struct EvaluationLoopOptions : EvaluateOptions {
  // The minimum time between the starts of two evaluations.
  absl::Duration eval_interval_secs = absl::Seconds(60);
  absl::optional<int64_t> max_number_of_evaluations;
  // See CheckpointsIteratorOptions.
  absl::Duration timeout = absl::InfiniteDuration();
  std::function<bool()> timeout_fn;
};

// Evaluates the checkpoints of a run as they appear. Skips a checkpoint that is removed before it is read. Returns the
// last evaluation, or nullopt if there was none. Errors: those of EvaluateOnce; Cancelled if `stop` ended the wait.
absl::StatusOr<absl::optional<Evaluation>> EvaluationLoop(const std::string& checkpoint_dir, const std::string& logdir,
                                                          const EvaluationLoopOptions& options = {});

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_EVALUATION_H_

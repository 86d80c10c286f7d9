#ifndef LOCKSTEP_TRAIN_GRAPH_ACTIONS_EVALUATE_H_
#define LOCKSTEP_TRAIN_GRAPH_ACTIONS_EVALUATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/graph_actions/restored_model.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep::train::graph_actions {

// A result: a number (written as a summary), a text (not written), or nothing.
using EvalValue = absl::optional<std::variant<double, std::string>>;
// Computes a result. `batch` is the current step's batch; null if there is no input or no step has been taken.
using EvalFunction = std::function<absl::StatusOr<EvalValue>(RestoredModel& model, const Batch* batch)>;

struct EvaluateOptions {
  // The op whose model is evaluated.
  TrainOp op;
  // The directory for the summary; created if needed.
  std::string output_dir;
  // A checkpoint's prefix. If empty, uses the initial values (global step 0) that the seed determines.
  std::string checkpoint_path;
  // Functions that compute results, by name. Without update_op, they are called with every step's batch, and the result
  // of the last call is used. With update_op, they are called when results are logged and at the end.
  std::map<std::string, EvalFunction> eval_dict;
  // Called with every step's batch, before eval_dict. May be null.
  std::function<absl::Status(RestoredModel& model, const Batch* batch)> update_op;
  // Metrics of the whole evaluation, named as in EvaluationConfig.metric. Their results have the same names. If both
  // `metrics` and eval_dict are empty, uses the configuration's metrics.
  std::vector<std::string> metrics;
  // Returns the batch of step 0, 1, …; OutOfRange ends the evaluation successfully. If null, the batches are the
  // examples of `split`, in order.
  std::function<absl::StatusOr<Batch>(int64_t step)> feed_fn;
  // If empty, uses evaluation.split of the configuration. If the configuration lacks that split, nothing is fed.
  std::string split;
  // The number of examples of the split per step.
  int64_t batch_size = 256;
  // The number of steps. If nullopt, runs until the input ends.
  absl::optional<int64_t> max_steps;
  int64_t log_every_steps = 10;
  // The file system that holds output_dir and the checkpoint.
  FileSystem* fs = FileSystem::Real();
  Clock* clock = Clock::Real();
  // Receives the lines about results. If null, they are logged.
  std::function<void(const std::string& line)> log;
};

struct EvaluateResult {
  std::map<std::string, EvalValue> results;
  // The checkpoint's global step; 0 without a checkpoint.
  int64_t global_step = 0;
};

// Evaluates a checkpoint in this process, and writes its numeric results as a summary at the checkpoint's step. Errors:
// InvalidArgument naming the wrong option; those of RestoredModel::Create, the input, the functions and the metrics.
absl::StatusOr<EvaluateResult> Evaluate(const EvaluateOptions& options);

}  // namespace lockstep::train::graph_actions

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_EVALUATE_H_

#ifndef LOCKSTEP_TRAIN_LEARN_ESTIMATOR_H_
#define LOCKSTEP_TRAIN_LEARN_ESTIMATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/checkpoint_saver_hook.h"
#include "lockstep/train/learn/run_config.h"
#include "lockstep/worker/data/dataset.h"

namespace lockstep::train {

// The metrics of a checkpoint.
struct EvaluationMetrics {
  int64_t global_step = 0;
  // The checkpoint's prefix.
  std::string checkpoint;
  // Metrics by name: "accuracy", "mean_loss", ….
  std::map<std::string, double> metrics;
};

// Creates the examples for an evaluation, in the form that the model expects. `input.normalization` is not applied to
// them.
using EvaluationInput = std::function<absl::StatusOr<std::unique_ptr<Dataset>>()>;

// An observer of an evaluation, called in the evaluation thread. An error ends the evaluation.
class EvaluationHook {
 public:
  virtual ~EvaluationHook() = default;
  virtual absl::Status Begin(const std::string& /*checkpoint*/) { return absl::OkStatus(); }
  // Called after each batch. `batches` and `examples` are the numbers evaluated so far.
  virtual absl::Status AfterBatch(int64_t /*batches*/, int64_t /*examples*/) { return absl::OkStatus(); }
  virtual absl::Status End(const EvaluationMetrics& /*result*/) { return absl::OkStatus(); }
};

// The interface through which an Experiment trains, evaluates and exports a model. Must be used by only one thread.
class Estimator {
 public:
  struct TrainArguments {
    // The split of the input to train on. If empty, "train".
    std::string train_split;
    // The hooks must outlive the call.
    std::vector<Hook*> hooks;
    // Called for each checkpoint on the chief. If checkpoints are saved both every N steps and periodically in time,
    // the listeners are called only for the former.
    std::vector<CheckpointListener*> saving_listeners;
    // The number of steps to train, from the run's current step.
    absl::optional<int64_t> steps;
    // The global step at which the run ends, regardless of `steps`. If absent, the configured number of steps applies.
    absl::optional<int64_t> max_steps;
    // The global step before which a worker computes nothing.
    int64_t startup_delay_steps = 0;
  };
  struct EvaluateArguments {
    // The split of the input to evaluate. If empty, uses the configuration's.
    std::string split;
    // Creates the examples, replacing the split. Called once per evaluation. If null, uses the split.
    EvaluationInput input_fn;
    // The split that was trained on (TrainArguments). Its statistics may standardize the examples of other splits.
    std::string train_split;
    // The number of batches. If absent, the whole split is evaluated.
    absl::optional<int64_t> steps;
    // Metrics in addition to those of the configuration.
    std::vector<std::string> metrics;
    // The results go to "eval" in the model_dir, or "eval_NAME".
    std::string name;
    // The checkpoint's prefix. If absent, the newest checkpoint is evaluated.
    absl::optional<std::string> checkpoint;
    // The hooks must outlive the call.
    std::vector<EvaluationHook*> hooks;
  };

  virtual ~Estimator() = default;

  // Checks the arguments of a later call to Train or Evaluate, so that a wrong one is reported before training. Returns
  // InvalidArgument naming the argument.
  virtual absl::Status CheckTraining(const TrainArguments& /*arguments*/) const { return absl::OkStatus(); }
  virtual absl::Status CheckEvaluation(const EvaluateArguments& /*arguments*/) const { return absl::OkStatus(); }

  // Trains as the chief or a worker until the run is over. Returns OK if the run ended successfully.
  virtual absl::Status Train(const TrainArguments& arguments) = 0;
  // Returns NotFound if there is no checkpoint.
  virtual absl::StatusOr<EvaluationMetrics> Evaluate(const EvaluateArguments& arguments) = 0;
  // Writes the model of result.checkpoint to a directory for other programs (train/learn/model_export.h).
  virtual absl::Status Export(const std::string& directory, const EvaluationMetrics& result) = 0;

  // Returns nullopt if there is no checkpoint yet.
  virtual absl::StatusOr<absl::optional<std::string>> LatestCheckpoint() = 0;
  // Returns true if the run in the model_dir has finished and its newest checkpoint is the one saved at its end.
  virtual absl::StatusOr<bool> RunIsFinished() = 0;
  // Returns the global step at which the run in the model_dir ends, read from its chief's record. Returns the largest
  // int64_t if the run has no bound or the bound is not known yet, and nullopt if there is no run.
  virtual absl::StatusOr<absl::optional<int64_t>> LastStep() { return absl::optional<int64_t>(); }
  // Calls train::AwaitRunEnd with the chief of this process's cluster.
  virtual absl::Status AwaitRunEnd(absl::Duration limit) = 0;

  virtual const RunConfig& config() const = 0;
  // Returns true if the chief saves periodically while it trains, so that saving listeners are called.
  virtual bool SavesPeriodically() const {
    return config().save_checkpoints_steps().has_value() || config().save_checkpoints_secs().has_value();
  }
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_ESTIMATOR_H_

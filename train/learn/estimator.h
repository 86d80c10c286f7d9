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

// How good a checkpoint is.
struct EvaluationMetrics {
  int64_t global_step = 0;
  // Its prefix.
  std::string checkpoint;
  // By name: "accuracy", "mean_loss", ….
  std::map<std::string, double> metrics;
};

// Makes the examples that an evaluation uses, as the model takes them: `input.normalization` is not applied.
using EvaluationInput = std::function<absl::StatusOr<std::unique_ptr<Dataset>>()>;

// Follows an evaluation, in the thread that evaluates. An error ends the evaluation.
class EvaluationHook {
 public:
  virtual ~EvaluationHook() = default;
  virtual absl::Status Begin(const std::string& /*checkpoint*/) { return absl::OkStatus(); }
  // Called after each batch. `batches` and `examples` count those that are evaluated so far.
  virtual absl::Status AfterBatch(int64_t /*batches*/, int64_t /*examples*/) { return absl::OkStatus(); }
  virtual absl::Status End(const EvaluationMetrics& /*result*/) { return absl::OkStatus(); }
};

// Something that is trained, evaluated and exported: what an Experiment does its work with. For one thread.
class Estimator {
 public:
  struct TrainArguments {
    // The split of the input that is trained on. If empty, it is "train".
    std::string train_split;
    // They outlive the call.
    std::vector<Hook*> hooks;
    // Told of each checkpoint, on the chief.
    std::vector<CheckpointListener*> saving_listeners;
    // So many steps from where the run stands.
    absl::optional<int64_t> steps;
    // The global step at which the run is finished, whatever `steps` says.
    absl::optional<int64_t> max_steps;
    // A worker: computes nothing before this global step.
    int64_t startup_delay_steps = 0;
  };
  struct EvaluateArguments {
    // The split of the input; empty: the configuration's.
    std::string split;
    // The examples in place of a split. Called once for each evaluation. Null: the split's.
    EvaluationInput input_fn;
    // The split that was trained on (TrainArguments); its statistics may standardize the examples of others.
    std::string train_split;
    // Batches; absent: the whole split.
    absl::optional<int64_t> steps;
    // In addition to those that the configuration names.
    std::vector<std::string> metrics;
    // The results go to "eval" in the model_dir, or "eval_NAME".
    std::string name;
    // The newest when absent.
    absl::optional<std::string> checkpoint;
    // They outlive the call.
    std::vector<EvaluationHook*> hooks;
  };

  virtual ~Estimator() = default;

  // Checks arguments that a later call of Train or Evaluate gets, so that a wrong one is reported before training.
  // InvalidArgument names the argument.
  virtual absl::Status CheckTraining(const TrainArguments& /*arguments*/) const { return absl::OkStatus(); }
  virtual absl::Status CheckEvaluation(const EvaluateArguments& /*arguments*/) const { return absl::OkStatus(); }

  // Trains as chief or worker, until the run is over. OK when it has ended well.
  virtual absl::Status Train(const TrainArguments& arguments) = 0;
  // NotFound when there is no checkpoint.
  virtual absl::StatusOr<EvaluationMetrics> Evaluate(const EvaluateArguments& arguments) = 0;
  // Writes the model of result.checkpoint to a directory, for others to use (train/learn/model_export.h).
  virtual absl::Status Export(const std::string& directory, const EvaluationMetrics& result) = 0;

  // nullopt: none yet.
  virtual absl::StatusOr<absl::optional<std::string>> LatestCheckpoint() = 0;
  // The run in the model_dir has ended well, with its newest checkpoint.
  virtual absl::StatusOr<bool> RunIsFinished() = 0;
  // The global step at which the run in the model_dir is over, as its chief was told; the largest number when it has no
  // bound or is not known yet. nullopt: there is no run.
  virtual absl::StatusOr<absl::optional<int64_t>> LastStep() { return absl::optional<int64_t>(); }
  // Train's AwaitRunEnd, with the chief of this process's cluster.
  virtual absl::Status AwaitRunEnd(absl::Duration limit) = 0;

  virtual const RunConfig& config() const = 0;
  // The chief saves while it trains, every so many steps or seconds, so that saving listeners are called.
  virtual bool SavesPeriodically() const {
    return config().save_checkpoints_steps().has_value() || config().save_checkpoints_secs().has_value();
  }
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_ESTIMATOR_H_

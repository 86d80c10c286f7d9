#ifndef LOCKSTEP_TRAIN_LEARN_EXPERIMENT_H_
#define LOCKSTEP_TRAIN_LEARN_EXPERIMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/learn/checkpoint_evaluation.h"
#include "lockstep/train/learn/estimator.h"
#include "lockstep/train/learn/export_strategy.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep::train {

struct ExperimentOptions {
  std::shared_ptr<Estimator> estimator;
  // The splits of the input to train and evaluate on. If eval_split is empty, uses the configuration's. Only the
  // chief's train_split counts.
  std::string train_split = "train";
  std::string eval_split;
  // Creates the examples for an evaluation, replacing eval_split. If null, uses the split.
  EvaluationInput eval_input_fn;
  // Metrics in addition to those of the configuration.
  std::vector<std::string> eval_metrics;
  // The global step at which training is over. If absent, the configuration determines it.
  absl::optional<int64_t> train_steps;
  // The number of batches per evaluation. If absent, uses the whole split.
  absl::optional<int64_t> eval_steps = 100;
  // Hooks for training and for evaluations. They must outlive the experiment.
  std::vector<Hook*> train_monitors;
  std::vector<EvaluationHook*> eval_hooks;
  // The min_eval_frequency of LocalRun.
  absl::optional<int64_t> local_eval_frequency;
  // The delay before the first evaluation of Evaluate and ContinuousEval.
  absl::Duration eval_delay = absl::Seconds(120);
  // The minimum time between the starts of two ContinuousEval evaluations.
  absl::Duration continuous_eval_throttle = absl::Seconds(60);
  // TrainAndEvaluate looks for a new checkpoint at every multiple of this many steps, at most once per check_interval.
  // If 0, it evaluates only at the end.
  int64_t min_eval_frequency = 1;
  absl::Duration check_interval = absl::Seconds(5);
  // If true, workers start computing one after another based on the global step instead of time.
  bool delay_workers_by_global_step = false;
  std::vector<ExportStrategy> export_strategies;
  // The number of steps per round of ContinuousTrainAndEval. If absent, a tenth of train_steps, or 1000.
  absl::optional<int64_t> train_steps_per_iteration;
  // If true, TrainAndEvaluate evaluates and exports each checkpoint that is saved with the RunConfig's period, while
  // the next step waits.
  bool checkpoint_and_export = false;
  // Called for each checkpoint that the chief saves periodically, which requires a period in its RunConfig. If there
  // are periods in both steps and time, the former applies. The listeners must outlive the experiment.
  std::vector<CheckpointListener*> saving_listeners;
  // All waits use this clock, and end when `stop`, which may be null, is requested. Both must outlive the experiment.
  Clock* clock = Clock::Real();
  StopSignal* stop = nullptr;
};

// The result of an Experiment method.
struct ExperimentResult {
  // Absent if nothing was evaluated.
  absl::optional<EvaluationMetrics> evaluation;
  // The paths of the exports, in the order of the strategies.
  std::vector<std::string> exports;
};

// Returns true to continue. Called before each round and after the last one, with the result of the previous round, or
// nullopt if that evaluated nothing.
using ContinuePredicate = std::function<bool(const absl::optional<EvaluationMetrics>& result)>;

struct ContinuousEvalOptions {
  // If absent, uses the experiment's delay and throttle.
  absl::optional<absl::Duration> delay;
  absl::optional<absl::Duration> throttle;
  bool evaluate_checkpoint_only_once = true;
  // If null, always continues.
  ContinuePredicate predicate;
  // The results go to "eval_NAME".
  std::string name = "continuous";
};

// Training and evaluation of a model, like tf.contrib.learn's Experiment. The methods are the tasks of a cluster's
// processes (learn_runner.h chooses one of them); nothing happens until one is called. An error from the estimator or
// an export ends a method. A method returns Cancelled if the process is asked to stop. Must be used by only one thread.
class Experiment {
 public:
  // Returns InvalidArgument naming the wrong option. The checks include CheckTraining and CheckEvaluation of the
  // estimator.
  static absl::StatusOr<std::unique_ptr<Experiment>> Create(ExperimentOptions options);

  // Trains as the chief or a worker. Without `delay`, task k starts 5 k seconds late, at most 60, or, with
  // delay_workers_by_global_step, when the global step reaches 8000 ln(k + 1). Returns OK if the run ends while a
  // worker waits to start.
  absl::Status Train(absl::optional<absl::Duration> delay = absl::nullopt);
  // Evaluates the newest checkpoint once.
  absl::StatusOr<EvaluationMetrics> Evaluate(absl::optional<absl::Duration> delay = absl::nullopt,
                                             const std::string& name = "one_pass");
  // Evaluates and exports each new checkpoint, up to and including that of the run's last step, or the last one of a
  // run that has ended. If the estimator does not know the last step, uses train_steps. Skips missing and damaged
  // checkpoints.
  absl::Status ContinuousEval(const ContinuousEvalOptions& options = ContinuousEvalOptions());
  // Like ContinuousEval, but on the training data and without exports.
  absl::Status ContinuousEvalOnTrainData(ContinuousEvalOptions options = OnTrainData());
  // Trains, evaluates during training according to min_eval_frequency or checkpoint_and_export, and finally evaluates
  // and exports.
  absl::StatusOr<ExperimentResult> TrainAndEvaluate();
  // Repeatedly trains for some steps, evaluates and exports, until the run reaches train_steps or `predicate` returns
  // false. Intended for a run in one process.
  absl::StatusOr<ExperimentResult> ContinuousTrainAndEval(const ContinuePredicate& predicate = nullptr);
  // Like TrainAndEvaluate, with local_eval_frequency.
  absl::StatusOr<ExperimentResult> LocalRun();
  // Runs a task of the job "ps", which waits for the end of the run. Returns InvalidArgument if there is no task type,
  // or if there is a cluster but no master. Without a cluster, the estimator knows the chief.
  absl::Status RunStdServer();
  // Trains one step, evaluates one batch and exports, to test that everything works.
  absl::StatusOr<ExperimentResult> Test();

  void ExtendTrainHooks(const std::vector<Hook*>& hooks);
  // Replaces the strategies and returns the old ones. Returns InvalidArgument and changes nothing if one is invalid.
  absl::StatusOr<std::vector<ExportStrategy>> ResetExportStrategies(std::vector<ExportStrategy> strategies = {});

  Estimator& estimator() const { return *options_.estimator; }
  const std::vector<std::string>& eval_metrics() const { return options_.eval_metrics; }
  const absl::optional<int64_t>& train_steps() const { return options_.train_steps; }
  const absl::optional<int64_t>& eval_steps() const { return options_.eval_steps; }
  const ExperimentOptions& options() const { return options_; }
  // Returns the number of steps per round of ContinuousTrainAndEval.
  int64_t steps_per_iteration() const;

 private:
  explicit Experiment(ExperimentOptions options) : options_(std::move(options)) {}
  static ContinuousEvalOptions OnTrainData();
  Estimator::TrainArguments TrainArguments() const;
  Estimator::EvaluateArguments EvaluateArguments(const std::string& name) const;
  absl::StatusOr<ExperimentResult> EvaluateAndExport(const Estimator::EvaluateArguments& arguments);
  absl::Status ContinuousLoop(const ContinuousEvalOptions& options, const std::string& split, bool exports);
  // Runs one round of ContinuousLoop. Returns the metrics if a checkpoint was evaluated, and sets `evaluated` to its
  // prefix.
  absl::StatusOr<absl::optional<EvaluationMetrics>> EvaluateNewest(const ContinuousEvalOptions& options,
                                                                   const std::string& split, bool exports,
                                                                   std::string* evaluated);
  // Returns true if nothing remains to be evaluated after this step.
  absl::StatusOr<bool> IsLast(int64_t step);
  absl::StatusOr<ExperimentResult> TrainAndEvaluateEvery(int64_t frequency);
  // Waits before this task starts training. Returns true if the run ends during the wait.
  absl::StatusOr<bool> DelayTraining(absl::Duration delay);
  absl::StatusOr<std::vector<std::string>> Export(const EvaluationMetrics& result);

  ExperimentOptions options_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_EXPERIMENT_H_

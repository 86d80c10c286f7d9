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
  // The splits of the input to train and evaluate on. If eval_split is empty, it is the configuration's. The
  // train_split of the chief is the one that counts.
  std::string train_split = "train";
  std::string eval_split;
  // Makes the examples of an evaluation in place of eval_split. If null, the split is used.
  EvaluationInput eval_input_fn;
  // Metrics in addition to those of the configuration.
  std::vector<std::string> eval_metrics;
  // The global step at which training is over. If absent, the configuration determines it.
  absl::optional<int64_t> train_steps;
  // The number of batches of an evaluation. If absent, the whole split.
  absl::optional<int64_t> eval_steps = 100;
  // Hooks of the training and of the evaluations. They must outlive the experiment.
  std::vector<Hook*> train_monitors;
  std::vector<EvaluationHook*> eval_hooks;
  // The min_eval_frequency of LocalRun.
  absl::optional<int64_t> local_eval_frequency;
  // The delay before the first evaluation of Evaluate and ContinuousEval.
  absl::Duration eval_delay = absl::Seconds(120);
  // The minimum time between the starts of two evaluations of ContinuousEval.
  absl::Duration continuous_eval_throttle = absl::Seconds(60);
  // TrainAndEvaluate looks for a new checkpoint at the multiples of this many steps, at most once in check_interval. If
  // 0, it evaluates only at the end.
  int64_t min_eval_frequency = 1;
  absl::Duration check_interval = absl::Seconds(5);
  // If true, workers begin to compute one after the other by global step, not by time.
  bool delay_workers_by_global_step = false;
  std::vector<ExportStrategy> export_strategies;
  // The steps of a round of ContinuousTrainAndEval. If absent, a tenth of train_steps, or 1000.
  absl::optional<int64_t> train_steps_per_iteration;
  // If true, TrainAndEvaluate evaluates and exports each checkpoint that the RunConfig's period saves, while the next
  // step waits.
  bool checkpoint_and_export = false;
  // Receive each checkpoint of the chief's period, which the RunConfig must have; if it has both, that of steps. They
  // must outlive the experiment.
  std::vector<CheckpointListener*> saving_listeners;
  // All waits use this clock and end with `stop`, which may be null. Both must outlive the experiment.
  Clock* clock = Clock::Real();
  StopSignal* stop = nullptr;
};

// The result of a method of Experiment.
struct ExperimentResult {
  // Absent if nothing was evaluated.
  absl::optional<EvaluationMetrics> evaluation;
  // The paths of the exports, in the order of the strategies.
  std::vector<std::string> exports;
};

// Returns true to continue. Called before each round, and after the last one, with the result of the previous round, or
// nullopt if that evaluated nothing.
using ContinuePredicate = std::function<bool(const absl::optional<EvaluationMetrics>& result)>;

struct ContinuousEvalOptions {
  // If absent, the experiment's are used.
  absl::optional<absl::Duration> delay;
  absl::optional<absl::Duration> throttle;
  bool evaluate_checkpoint_only_once = true;
  // If null, it always continues.
  ContinuePredicate predicate;
  // The results go to "eval_NAME".
  std::string name = "continuous";
};

// Trains and evaluates a model, as tf.contrib.learn's Experiment. Its methods are the tasks of a cluster's processes
// (learn_runner.h chooses one), and nothing happens before one is called. Errors of the estimator and of the exports
// end a method. It returns Cancelled if the process is asked to stop. Must be used by one thread.
class Experiment {
 public:
  // Returns InvalidArgument, which names the option that is wrong, also by CheckTraining and CheckEvaluation of the
  // estimator.
  static absl::StatusOr<std::unique_ptr<Experiment>> Create(ExperimentOptions options);

  // Trains, as chief or worker. Without `delay`, task k begins 5 k seconds late, at most 60, or with
  // delay_workers_by_global_step when the global step is 8000 ln(k + 1). Returns OK if a worker's run ends meanwhile.
  absl::Status Train(absl::optional<absl::Duration> delay = absl::nullopt);
  // Evaluates the newest checkpoint once.
  absl::StatusOr<EvaluationMetrics> Evaluate(absl::optional<absl::Duration> delay = absl::nullopt,
                                             const std::string& name = "one_pass");
  // Evaluates and exports each new checkpoint, until that of the run's last step, or the last one of a run that has
  // ended. If the estimator does not know the last step, it is train_steps. Skips a checkpoint that is gone or damaged.
  absl::Status ContinuousEval(const ContinuousEvalOptions& options = ContinuousEvalOptions());
  // As ContinuousEval, but on the training data and without exports.
  absl::Status ContinuousEvalOnTrainData(ContinuousEvalOptions options = OnTrainData());
  // Trains, and evaluates meanwhile as min_eval_frequency or checkpoint_and_export say; then evaluates and exports.
  absl::StatusOr<ExperimentResult> TrainAndEvaluate();
  // Repeatedly trains some steps, evaluates and exports, until train_steps or until `predicate` is false. For one
  // process.
  absl::StatusOr<ExperimentResult> ContinuousTrainAndEval(const ContinuePredicate& predicate = nullptr);
  // As TrainAndEvaluate, with local_eval_frequency.
  absl::StatusOr<ExperimentResult> LocalRun();
  // Runs a task of the job "ps": waits for the end of the run. Returns InvalidArgument without a task type, or if a
  // cluster has no master; without a cluster, the estimator knows the chief.
  absl::Status RunStdServer();
  // Trains one step, evaluates one batch and exports, to test that all of it works.
  absl::StatusOr<ExperimentResult> Test();

  void ExtendTrainHooks(const std::vector<Hook*>& hooks);
  // Replaces the strategies and returns the old ones. Returns InvalidArgument, and changes nothing, if one is wrong.
  absl::StatusOr<std::vector<ExportStrategy>> ResetExportStrategies(std::vector<ExportStrategy> strategies = {});

  Estimator& estimator() const { return *options_.estimator; }
  const std::vector<std::string>& eval_metrics() const { return options_.eval_metrics; }
  const absl::optional<int64_t>& train_steps() const { return options_.train_steps; }
  const absl::optional<int64_t>& eval_steps() const { return options_.eval_steps; }
  const ExperimentOptions& options() const { return options_; }
  // Returns the steps of a round of ContinuousTrainAndEval.
  int64_t steps_per_iteration() const;

 private:
  explicit Experiment(ExperimentOptions options) : options_(std::move(options)) {}
  static ContinuousEvalOptions OnTrainData();
  Estimator::TrainArguments TrainArguments() const;
  Estimator::EvaluateArguments EvaluateArguments(const std::string& name) const;
  absl::StatusOr<ExperimentResult> EvaluateAndExport(const Estimator::EvaluateArguments& arguments);
  absl::Status ContinuousLoop(const ContinuousEvalOptions& options, const std::string& split, bool exports);
  // Makes a round of ContinuousLoop. Returns the metrics, if a checkpoint was evaluated; `evaluated` is its prefix.
  absl::StatusOr<absl::optional<EvaluationMetrics>> EvaluateNewest(const ContinuousEvalOptions& options,
                                                                   const std::string& split, bool exports,
                                                                   std::string* evaluated);
  // Returns true if nothing is left to evaluate after this step.
  absl::StatusOr<bool> IsLast(int64_t step);
  absl::StatusOr<ExperimentResult> TrainAndEvaluateEvery(int64_t frequency);
  // Waits before the training of this task. Returns true if the run ends meanwhile.
  absl::StatusOr<bool> DelayTraining(absl::Duration delay);
  absl::StatusOr<std::vector<std::string>> Export(const EvaluationMetrics& result);

  ExperimentOptions options_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_EXPERIMENT_H_

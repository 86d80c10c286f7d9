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
  // The splits of its input that are trained and evaluated on; empty eval_split: the configuration's. The chief's
  // train_split counts.
  std::string train_split = "train";
  std::string eval_split;
  // Makes the examples of an evaluation in place of eval_split. Null: the split's.
  EvaluationInput eval_input_fn;
  // In addition to those that the configuration names.
  std::vector<std::string> eval_metrics;
  // The global step at which training is over; absent: what the configuration says.
  absl::optional<int64_t> train_steps;
  // Batches of an evaluation; absent: the whole split.
  absl::optional<int64_t> eval_steps = 100;
  // Hooks of the training and of the evaluations; they outlive the experiment.
  std::vector<Hook*> train_monitors;
  std::vector<EvaluationHook*> eval_hooks;
  // LocalRun's min_eval_frequency.
  absl::optional<int64_t> local_eval_frequency;
  // Before the first evaluation of Evaluate and ContinuousEval.
  absl::Duration eval_delay = absl::Seconds(120);
  // ContinuousEval begins its evaluations at least this far apart.
  absl::Duration continuous_eval_throttle = absl::Seconds(60);
  // TrainAndEvaluate looks for a new checkpoint at the multiples of so many steps, at most once in check_interval; 0:
  // it evaluates at the end alone.
  int64_t min_eval_frequency = 1;
  absl::Duration check_interval = absl::Seconds(5);
  // Workers begin to compute one after the other: by global steps, and not by time.
  bool delay_workers_by_global_step = false;
  std::vector<ExportStrategy> export_strategies;
  // ContinuousTrainAndEval's; absent: a tenth of train_steps, or 1000.
  absl::optional<int64_t> train_steps_per_iteration;
  // TrainAndEvaluate evaluates and exports each checkpoint that the RunConfig's period saves, while the next step
  // waits.
  bool checkpoint_and_export = false;
  // Told of each checkpoint, on the chief, which the RunConfig gives a period; they outlive the experiment.
  std::vector<CheckpointListener*> saving_listeners;
  // All waits are this clock's and end with `stop`, which may be null. They outlive the experiment.
  Clock* clock = Clock::Real();
  StopSignal* stop = nullptr;
};

// What a method has come to.
struct ExperimentResult {
  // Absent when nothing was evaluated.
  absl::optional<EvaluationMetrics> evaluation;
  // Where the strategies have exported to, in their order.
  std::vector<std::string> exports;
};

// Returns whether to continue. Called before each round, and after the last one, with the result of the round before;
// nullopt if that evaluated nothing.
using ContinuePredicate = std::function<bool(const absl::optional<EvaluationMetrics>& result)>;

struct ContinuousEvalOptions {
  // Absent: the experiment's.
  absl::optional<absl::Duration> delay;
  absl::optional<absl::Duration> throttle;
  bool evaluate_checkpoint_only_once = true;
  // Null: always true.
  ContinuePredicate predicate;
  // The results go to "eval_NAME".
  std::string name = "continuous";
};

// A model to be trained and evaluated, and how: tf.contrib.learn's Experiment. Its methods are what the processes of a
// cluster do (learn_runner.h chooses). Nothing happens before one is called. Errors of the estimator and of the exports
// end a method; Cancelled when the process was told to stop. For one thread.
class Experiment {
 public:
  // InvalidArgument names the option that is wrong, also by the estimator's CheckTraining and CheckEvaluation.
  static absl::StatusOr<std::unique_ptr<Experiment>> Create(ExperimentOptions options);

  // Trains, as chief or worker. Without a `delay` task k begins 5 k seconds late, at most 60, or with
  // delay_workers_by_global_step when the global step is 8000 ln(k + 1). A worker whose run ends meanwhile is done.
  absl::Status Train(absl::optional<absl::Duration> delay = absl::nullopt);
  // Evaluates the newest checkpoint once.
  absl::StatusOr<EvaluationMetrics> Evaluate(absl::optional<absl::Duration> delay = absl::nullopt,
                                             const std::string& name = "one_pass");
  // Evaluates and exports each new checkpoint, until that of the run's last step, or the last one of a run that has
  // ended, was evaluated; train_steps is the last step where the estimator knows of none. One that is gone or damaged
  // is skipped.
  absl::Status ContinuousEval(const ContinuousEvalOptions& options = ContinuousEvalOptions());
  // The same on the data of the training, without exports.
  absl::Status ContinuousEvalOnTrainData(ContinuousEvalOptions options = OnTrainData());
  // Trains, with evaluations meanwhile as min_eval_frequency or checkpoint_and_export say; then evaluates and exports.
  absl::StatusOr<ExperimentResult> TrainAndEvaluate();
  // Trains some steps, evaluates, exports, and so on until train_steps or until `predicate` is false. For one process.
  absl::StatusOr<ExperimentResult> ContinuousTrainAndEval(const ContinuePredicate& predicate = nullptr);
  // TrainAndEvaluate with local_eval_frequency.
  absl::StatusOr<ExperimentResult> LocalRun();
  // What a task of the job "ps" does: it waits for the end of the run. InvalidArgument without a task type, or a
  // cluster without a master; without a cluster the estimator knows the chief.
  absl::Status RunStdServer();
  // One step, one batch, one export: whether all of it works.
  absl::StatusOr<ExperimentResult> Test();

  void ExtendTrainHooks(const std::vector<Hook*>& hooks);
  // Returns the strategies until now. InvalidArgument for wrong ones, and nothing changes.
  absl::StatusOr<std::vector<ExportStrategy>> ResetExportStrategies(std::vector<ExportStrategy> strategies = {});

  Estimator& estimator() const { return *options_.estimator; }
  const std::vector<std::string>& eval_metrics() const { return options_.eval_metrics; }
  const absl::optional<int64_t>& train_steps() const { return options_.train_steps; }
  const absl::optional<int64_t>& eval_steps() const { return options_.eval_steps; }
  const ExperimentOptions& options() const { return options_; }
  // Of ContinuousTrainAndEval.
  int64_t steps_per_iteration() const;

 private:
  explicit Experiment(ExperimentOptions options) : options_(std::move(options)) {}
  static ContinuousEvalOptions OnTrainData();
  Estimator::TrainArguments TrainArguments() const;
  Estimator::EvaluateArguments EvaluateArguments(const std::string& name) const;
  absl::StatusOr<ExperimentResult> EvaluateAndExport(const Estimator::EvaluateArguments& arguments);
  absl::Status ContinuousLoop(const ContinuousEvalOptions& options, const std::string& split, bool exports);
  // A round of it: what was evaluated, if anything; `evaluated` is the checkpoint.
  absl::StatusOr<absl::optional<EvaluationMetrics>> EvaluateNewest(const ContinuousEvalOptions& options,
                                                                   const std::string& split, bool exports,
                                                                   std::string* evaluated);
  // Whether nothing is left to evaluate after this step.
  absl::StatusOr<bool> IsLast(int64_t step);
  absl::StatusOr<ExperimentResult> TrainAndEvaluateEvery(int64_t frequency);
  // Waits before the training of this task. True: the run is over meanwhile.
  absl::StatusOr<bool> DelayTraining(absl::Duration delay);
  absl::StatusOr<std::vector<std::string>> Export(const EvaluationMetrics& result);

  ExperimentOptions options_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_EXPERIMENT_H_

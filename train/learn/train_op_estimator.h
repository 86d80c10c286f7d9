#ifndef LOCKSTEP_TRAIN_LEARN_TRAIN_OP_ESTIMATOR_H_
#define LOCKSTEP_TRAIN_LEARN_TRAIN_OP_ESTIMATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/train/evaluation/run_evaluator.h"
#include "lockstep/train/learn/estimator.h"
#include "lockstep/train/monitored/scaffold.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

struct TrainOpEstimatorOptions {
  // The model, and this process's role, as in Program::Options. The logdir is the RunConfig's model_dir.
  SessionOptions session;
  Scaffold scaffold;
  // Returns the metrics of the checkpoint with this prefix. Required if `op.make_workload` creates the model. If null,
  // the model is evaluated according to its configuration.
  std::function<absl::StatusOr<std::map<std::string, double>>(const std::string& checkpoint,
                                                              const Estimator::EvaluateArguments& arguments)>
      evaluate;
};

// An estimator that trains a TrainOp in MonitoredTrainingSessions, and evaluates and exports its checkpoints. Its runs
// are asynchronous unless the configuration chooses a policy or replicas_to_aggregate (ApplyDefaultPolicy).
class TrainOpEstimator : public Estimator {
 public:
  // Returns InvalidArgument if `config` and options.session disagree about the process's role or the model_dir, if the
  // chief or an evaluator has no model_dir, or if the model cannot be evaluated.
  static absl::StatusOr<std::shared_ptr<TrainOpEstimator>> Create(const RunConfig& config,
                                                                  TrainOpEstimatorOptions options);

  absl::Status CheckTraining(const TrainArguments& arguments) const override;
  absl::Status CheckEvaluation(const EvaluateArguments& arguments) const override;
  absl::Status Train(const TrainArguments& arguments) override;
  absl::StatusOr<EvaluationMetrics> Evaluate(const EvaluateArguments& arguments) override;
  absl::Status Export(const std::string& directory, const EvaluationMetrics& result) override;
  absl::StatusOr<absl::optional<std::string>> LatestCheckpoint() override;
  absl::StatusOr<bool> RunIsFinished() override;
  absl::StatusOr<absl::optional<int64_t>> LastStep() override;
  absl::Status AwaitRunEnd(absl::Duration limit) override;
  const RunConfig& config() const override { return config_; }
  // Uses the RunConfig's periods, or the configuration's where the RunConfig sets none.
  bool SavesPeriodically() const override;

 private:
  TrainOpEstimator(const RunConfig& config, TrainOpEstimatorOptions options)
      : config_(config), options_(std::move(options)) {}
  absl::StatusOr<EvaluationMetrics> Measure(const std::string& checkpoint, const EvaluateArguments& arguments);
  // Returns the evaluator for a split and metrics, which keeps the data and the model in memory. If the examples come
  // from an input_fn, stores the evaluator in `of_input_fn`.
  absl::StatusOr<RunEvaluator*> EvaluatorOf(const EvaluateArguments& arguments,
                                            std::unique_ptr<RunEvaluator>* of_input_fn);
  absl::Status WriteEvents(const std::string& name, const EvaluationMetrics& result);
  FileSystem* fs() const { return options_.session.fs; }

  const RunConfig config_;
  const TrainOpEstimatorOptions options_;
  std::map<std::string, std::unique_ptr<RunEvaluator>> evaluators_;
  // Event writers by evaluation name.
  std::map<std::string, std::shared_ptr<EventWriter>> events_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_TRAIN_OP_ESTIMATOR_H_

// An Experiment that learns whether a breast tumor is malignant from thirty measurements of its cells' nuclei
// (data/README.md). It evaluates checkpoints during training, and exports the model. A process's flags determine its
// role, or TF_CONFIG in the environment, as set by Kubeflow.
//
//   ./lockstep exec //examples:experiment --logdir=/tmp/run                             all in this process
//   ./lockstep predict --export=/tmp/run/export/model/2000 --output=answers.csv         the exported model's answers
//
//   export TF_CONFIG='{"cluster": {"chief": ["localhost:2222"], "worker": ["localhost:2223"]},
//                      "task": {"type": "chief", "index": 0}, "model_dir": "/tmp/run"}'
//   ./lockstep exec //examples:experiment                                               the chief of a cluster
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/substitute.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/train/learn/learn_runner.h"
#include "lockstep/train/learn/train_op_estimator.h"
#include "lockstep/train/program/program.h"

using lockstep::AbsolutePath;
using lockstep::train::CreateTrainOp;
using lockstep::train::Experiment;
using lockstep::train::ExperimentOptions;
using lockstep::train::ExperimentResult;
using lockstep::train::MakeExportStrategy;
using lockstep::train::Program;
using lockstep::train::RunConfig;
using lockstep::train::RunConfigOptions;
using lockstep::train::TrainOp;
using lockstep::train::TrainOpEstimator;
using lockstep::train::TrainOpEstimatorOptions;

// $0 is replaced with the directory of the data.
constexpr char kRun[] = R"(
  model {
    layer { name: "hidden" dense { units: 32 activation: RELU } }
    layer { name: "odds" dense { units: 1 } }
    loss { sigmoid_cross_entropy {} }
    regularizer { variables: "kernel" l2: 0.001 }
  }
  input {
    split { name: "train" libsvm { file: "$0/breast_cancer_train.libsvm" features: 30 binary_labels: true } }
    split { name: "test" libsvm { file: "$0/breast_cancer_test.libsvm" features: 30 binary_labels: true } }
    batch_size: 19
  }
  optimizer { adagrad {} learning_rate { initial: 0.1 } }
  training { steps: 2000 replicas_to_aggregate: 4 }
  evaluation { metric: "accuracy" metric: "auc" metric: "mean_loss" }
)";

absl::StatusOr<std::unique_ptr<Experiment>> MakeExperiment(const std::string& data, Program* program,
                                                           const RunConfig& config) {
  ASSIGN_OR_RETURN(TrainOp train_op, CreateTrainOp(absl::Substitute(kRun, AbsolutePath(data))));
  ASSIGN_OR_RETURN(train_op, train_op.WithSpec(program->WithFlags(train_op.spec)));
  TrainOpEstimatorOptions estimator;
  estimator.session = program->Options(train_op);
  ExperimentOptions options;
  ASSIGN_OR_RETURN(options.estimator, TrainOpEstimator::Create(config, std::move(estimator)));
  options.train_steps = train_op.spec.training().steps();
  options.eval_steps = absl::nullopt;  // all of the test split
  options.eval_delay = absl::ZeroDuration();
  options.continuous_eval_throttle = absl::Seconds(1);
  options.min_eval_frequency = 500;
  options.delay_workers_by_global_step = true;
  options.export_strategies = {MakeExportStrategy("model")};
  options.stop = program->stop();
  return Experiment::Create(std::move(options));
}

absl::Status Train(const std::string& data, Program* program) {
  RunConfigOptions options;
  options.save_checkpoints_steps = 500;
  ASSIGN_OR_RETURN(const RunConfig config, RunConfig::Create(options, program->process().environment));
  const auto make = [&](const RunConfig& of_task) { return MakeExperiment(data, program, of_task); };
  ASSIGN_OR_RETURN(const ExperimentResult result, lockstep::train::learn_runner::Run(make, config));
  if (result.evaluation) std::cout << "accuracy " << result.evaluation->metrics.at("accuracy") << "\n";
  for (const std::string& path : result.exports) std::cout << "exported to " << path << "\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  Program program(argc, argv, "An Experiment: trains, evaluates and exports a small network.");
  std::string data = "examples/data";
  program.command_line().AddFlag("data", "DIR", "where the data are", &data);
  return program.RunEveryRole([&] { return Train(data, &program); });
}

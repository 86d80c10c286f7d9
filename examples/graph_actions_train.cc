// Trains a logistic regression on a libsvm file with graph_actions::Train, and evaluates it with
// graph_actions::Evaluate. Its flags make it a chief, a worker, or all in one process.
//
//   ./lockstep exec //examples:graph_actions_train --logdir=/tmp/run                            all in this process
//   ./lockstep exec //examples:graph_actions_train --logdir=/tmp/run --listen=127.0.0.1:2222    the chief
//   ./lockstep exec //examples:graph_actions_train --master=grpc://127.0.0.1:2222               a worker
#include <iostream>
#include <variant>

#include "absl/strings/substitute.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/train/graph_actions/graph_actions.h"
#include "lockstep/train/program/program.h"
#include "lockstep/train/saver/checkpoints.h"

using lockstep::AbsolutePath;
using lockstep::train::CreateTrainOp;
using lockstep::train::LatestCheckpoint;
using lockstep::train::Program;
using lockstep::train::TrainOp;
namespace graph_actions = lockstep::train::graph_actions;

// Breast tumors: 30 measurements each, and whether the tumor is benign. $0 is replaced with the directory of the files.
constexpr char kRun[] = R"(
  model { layer { name: "odds" dense { units: 1 } } loss { sigmoid_cross_entropy {} } }
  input {
    split { name: "train" libsvm { file: "$0/breast_cancer_train.libsvm" features: 30 binary_labels: true } }
    split { name: "test" libsvm { file: "$0/breast_cancer_test.libsvm" features: 30 binary_labels: true } }
    batch_size: 19
  }
  optimizer { adagrad {} learning_rate { initial: 0.5 } }
  training { steps: 600 replicas_to_aggregate: 4 }
  evaluation { metric: "accuracy" metric: "auc" }
)";

absl::Status Evaluate(const TrainOp& train_op, const std::string& logdir) {
  ASSIGN_OR_RETURN(const auto checkpoint, LatestCheckpoint(logdir));
  if (!checkpoint) return absl::OkStatus();
  graph_actions::EvaluateOptions options;
  options.op = train_op;
  options.checkpoint_path = *checkpoint;
  options.output_dir = logdir + "/eval";
  ASSIGN_OR_RETURN(const auto evaluation, graph_actions::Evaluate(options));
  for (const auto& [name, value] : evaluation.results) {
    std::cout << "step " << evaluation.global_step << ": " << name << " " << std::get<double>(*value) << "\n";
  }
  return absl::OkStatus();
}

absl::Status Train(Program* program, const std::string& data) {
  ASSIGN_OR_RETURN(TrainOp train_op, CreateTrainOp(absl::Substitute(kRun, AbsolutePath(data))));
  ASSIGN_OR_RETURN(train_op, train_op.WithSpec(program->WithFlags(train_op.spec)));
  graph_actions::TrainOptions options;
  options.session = program->Options(train_op);
  options.log_every_steps = 100;
  options.save_model_period = absl::Seconds(60);
  ASSIGN_OR_RETURN(const auto loss, graph_actions::Train(options));
  if (loss) std::cout << "the last loss is " << *loss << "\n";  // no loss: the run was already over
  const std::string& logdir = options.session.logdir;
  return logdir.empty() ? absl::OkStatus() : Evaluate(train_op, logdir);
}

int main(int argc, char** argv) {
  Program program(argc, argv, "Trains a logistic regression on a libsvm file with graph_actions::Train.");
  std::string data = "examples/data";
  program.command_line().AddFlag("data", "DIR", "where the libsvm files are", &data);
  return program.Run([&] { return Train(&program, data); });
}

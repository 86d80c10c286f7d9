// Detects malignant tumors (examples/data) like a tf_slim script. Its flags make it a chief, a worker, or all in one
// process. The comments show the Python equivalent of each part.
//
//   ./lockstep exec //examples:slim_train --logdir=/tmp/run                            all in this process
//   ./lockstep exec //examples:slim_train --logdir=/tmp/run --listen=127.0.0.1:2222    the chief, which also computes
//   ./lockstep exec //examples:slim_train --master=grpc://127.0.0.1:2222               a worker
#include <filesystem>
#include <iostream>
#include <string>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/train/program/program.h"
#include "lockstep/train/saver/checkpoints.h"
#include "lockstep/train/slim/create_train_op.h"
#include "lockstep/train/slim/evaluation.h"
#include "lockstep/train/slim/learning.h"

using lockstep::train::Program;
using lockstep::train::TrainOp;
namespace slim = lockstep::train::slim;

// features, labels = load_libsvm('breast_cancer_train.libsvm')
// net = slim.fully_connected(features, 16, scope='hidden')
// net = slim.dropout(net, keep_prob=0.9)
// logits = slim.fully_connected(net, 1, activation_fn=None, scope='logits')
// total_loss = tf.losses.sigmoid_cross_entropy(labels, logits)
constexpr char kTotalLoss[] = R"(
  model {
    layer { name: "hidden" dense { units: 16 activation: RELU } }
    layer { name: "dropout" dropout { rate: 0.1 } }
    layer { name: "logits" dense { units: 1 } }
    loss { sigmoid_cross_entropy {} }
  }
  input {
    split { name: "train" libsvm { file: "breast_cancer_train.libsvm" features: 30 binary_labels: true } }
    split { name: "test" libsvm { file: "breast_cancer_test.libsvm" features: 30 binary_labels: true } }
    batch_size: 32
  }
  training { steps: 2000 replicas_to_aggregate: 4 }
)";

// optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
constexpr char kOptimizer[] = "momentum { momentum: 0.9 } learning_rate { initial: 0.05 }";

absl::Status Train(Program* program, const std::string& data) {
  lockstep::config::v1::RunSpec total_loss;
  lockstep::config::v1::OptimizerConfig optimizer;
  RETURN_IF_ERROR(lockstep::ParseTextProto(kTotalLoss, "total_loss", &total_loss));
  RETURN_IF_ERROR(lockstep::ParseTextProto(kOptimizer, "optimizer", &optimizer));
  lockstep::ResolvePaths(std::filesystem::absolute(data).string(), &total_loss);
  total_loss = program->WithFlags(total_loss);

  // train_op = slim.learning.create_train_op(total_loss, optimizer, clip_gradient_norm=4,
  //                                          gradient_multipliers={'logits/biases': 2.0})
  slim::CreateTrainOpOptions create;
  create.clip_gradient_norm = 4;
  create.gradient_multipliers = {{"logits/bias", 2.0f}};
  ASSIGN_OR_RETURN(const TrainOp train_op, slim::CreateTrainOp(total_loss, optimizer, create));

  // loss = slim.learning.train(train_op, FLAGS.logdir, log_every_n_steps=100, master=FLAGS.master,
  //                            is_chief=FLAGS.task_index == 0, number_of_steps=FLAGS.steps, save_summaries_secs=10,
  //                            save_interval_secs=60, trace_every_n_steps=1000,
  //                            sync_optimizer=tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=4))
  slim::TrainOptions options;
  options.session = program->Options(train_op);  // master, is_chief, and where it listens
  const std::string logdir = options.session.logdir;
  options.log_every_n_steps = 100;
  if (program->is_chief()) options.number_of_steps = total_loss.training().steps();  // workers end with the run
  options.save_summaries_secs = absl::Seconds(10);
  options.save_interval_secs = absl::Seconds(60);
  if (!logdir.empty()) options.trace_every_n_steps = 1000;
  options.sync_optimizer = {{/*replicas_to_aggregate=*/4}};
  ASSIGN_OR_RETURN(const absl::optional<double> loss, slim::Train(train_op, logdir, options));
  if (loss) std::cout << "loss " << *loss << "\n";

  // slim.evaluation.evaluate_once(FLAGS.master, tf.train.latest_checkpoint(FLAGS.logdir), FLAGS.logdir + '/eval')
  if (!program->is_chief() || logdir.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const absl::optional<std::string> checkpoint, lockstep::train::LatestCheckpoint(logdir));
  ASSIGN_OR_RETURN(const slim::Evaluation evaluation, slim::EvaluateOnce(*checkpoint, logdir + "/eval"));
  std::cout << lockstep::EvaluationText("test", evaluation.result) << "\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  Program program(argc, argv, "Trains a classifier of tumours as tf_slim.learning.train does.");
  std::string data = "examples/data";
  program.command_line().AddFlag("data", "DIR", "where breast_cancer_train.libsvm and the other are", &data);
  return program.Run([&] { return Train(&program, data); });
}

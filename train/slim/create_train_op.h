#ifndef LOCKSTEP_TRAIN_SLIM_CREATE_TRAIN_OP_H_
#define LOCKSTEP_TRAIN_SLIM_CREATE_TRAIN_OP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/train/slim/gradients.h"
#include "lockstep/train/slim/own_update_op.h"

namespace lockstep::train::slim {

// The names of TensorFlow's constants: tf.train.Optimizer.GATE_OP, tf.AggregationMethod.ADD_N.
enum class GateGradients { kNone, kOp, kGraph };
enum class AggregationMethod { kAddN, kExperimentalTree, kExperimentalAccumulateN };

// tf_slim.learning.create_train_op's arguments, and transform_grads_fn of tf_slim.training.create_train_op.
struct CreateTrainOpOptions {
  // Must be "global_step", which names each batch and random number, so that no update can do without it.
  Choice<std::string> global_step;
  // The update ops that run, by the variables that they change, such as "bn/moving_mean". If absent, all of the model.
  // A list that lacks some is logged, but is no error.
  absl::optional<std::vector<std::string>> update_ops;
  // The program's own update ops, in addition to those of a configured model or one of make_workload. They always run.
  std::vector<OwnUpdateOp> own_update_ops;
  // The variables to train, at least one. If absent, all trainable ones. The others keep their values.
  absl::optional<std::vector<std::string>> variables_to_train;
  // The greatest L2 norm of each gradient, after the multipliers. 0 or less: no limit. If the optimizer has a
  // clip.by_norm, the smaller of the two applies.
  float clip_gradient_norm = 0;
  // If true, writes a histogram and the norm of each variable's gradient. It takes the gradients of the first slot of
  // every summarize_every_n_steps-th step, after everything that changes them, the optimizer's clips included
  // (summary.gradients_every_steps of the configuration). Changes no weights. Sessions that write no summaries write
  // none of these either.
  bool summarize_gradients = false;
  int64_t summarize_every_n_steps = 100;
  // Multipliers by variable. Each must name a variable that is trained.
  GradientMultipliers gradient_multipliers;
  // Options for the computation of a TensorFlow graph. They have no effect here, and each that is set is logged:
  // gradients are computed in one order and summed along one tree, so that their bits do not depend on the arrangement.
  GateGradients gate_gradients = GateGradients::kOp;
  absl::optional<AggregationMethod> aggregation_method;
  bool colocate_gradients_with_ops = false;
  // Transforms all gradients of a slot together, in place of multipliers and clipping.
  TransformGradsFn transform_grads_fn;
  // Must be true: no value that is not finite is ever applied.
  bool check_numerics = true;
  // Makes the program's own model and input, in place of those that total_loss describes.
  WorkloadFactory make_workload;
};

// Creates the op that a run trains. Gradients are transformed in one order, wherever a transform is given: functions
// (gradient_multipliers, transform_grads_fn), numbers and the optimizer's multipliers, its clip by value, by norm
// (clip_gradient_norm), by global norm. `total_loss` is a configuration with a model, its loss and an input; if it has
// no length, the run is unbounded. `optimizer` takes the place of its optimizer. All programs of a run must create the
// same op. Errors: InvalidArgument with one line for each problem. A worker that makes the model, before the first
// step, reports names of variables and update ops that the model does not have.
absl::StatusOr<TrainOp> CreateTrainOp(config::v1::RunSpec total_loss, const config::v1::OptimizerConfig& optimizer,
                                      CreateTrainOpOptions options = {});

// Creates the op from texts of a configuration.
absl::StatusOr<TrainOp> CreateTrainOp(const std::string& total_loss, const std::string& optimizer,
                                      CreateTrainOpOptions options = {});

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_CREATE_TRAIN_OP_H_

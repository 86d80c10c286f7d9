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

// Named after TensorFlow's constants, such as tf.train.Optimizer.GATE_OP and tf.AggregationMethod.ADD_N.
enum class GateGradients { kNone, kOp, kGraph };
enum class AggregationMethod { kAddN, kExperimentalTree, kExperimentalAccumulateN };

// The arguments of tf_slim.learning.create_train_op, and transform_grads_fn of tf_slim.training.create_train_op.
struct CreateTrainOpOptions {
  // Must be "global_step": it identifies each batch and random number, so no update can work without it.
  Choice<std::string> global_step;
  // The update ops to run, named by the variables that they change, such as "bn/moving_mean". If absent, all update ops
  // of the model. Omitting some is not an error, but is logged.
  absl::optional<std::vector<std::string>> update_ops;
  // The program's own update ops, in addition to those of the model, which comes from the configuration or from
  // make_workload. They always run.
  std::vector<OwnUpdateOp> own_update_ops;
  // The variables to train, at least one. If absent, all trainable ones. The others keep their values.
  absl::optional<std::vector<std::string>> variables_to_train;
  // The maximum L2 norm of each gradient, after the multipliers. 0 or less means no limit. If the optimizer has a
  // clip.by_norm, the smaller of the two applies.
  float clip_gradient_norm = 0;
  // If true, writes a histogram and the norm of each variable's gradient. Uses the gradients of the first slot of every
  // summarize_every_n_steps-th step, after all changes to them, including the optimizer's clips
  // (summary.gradients_every_steps of the configuration). Does not change weights. Sessions that write no summaries
  // write none of these either.
  bool summarize_gradients = false;
  int64_t summarize_every_n_steps = 100;
  // Multipliers by variable. Each must name a trained variable.
  GradientMultipliers gradient_multipliers;
  // In TensorFlow, these control how a graph is computed. They have no effect here, and each one that is set is logged:
  // gradients are always computed in one order and summed along one tree, so their bits do not depend on such choices.
  GateGradients gate_gradients = GateGradients::kOp;
  absl::optional<AggregationMethod> aggregation_method;
  bool colocate_gradients_with_ops = false;
  // Transforms all gradients of a slot together. Cannot be combined with gradient_multipliers or clip_gradient_norm.
  TransformGradsFn transform_grads_fn;
  // Must be true: non-finite values are never applied.
  bool check_numerics = true;
  // Creates the program's own model and input, replacing those that total_loss describes.
  WorkloadFactory make_workload;
};

// Creates the op that a run trains. Gradients are transformed in a fixed order, regardless of where a transform is
// specified: by functions (gradient_multipliers, transform_grads_fn), by numbers and the optimizer's multipliers, then
// clipped by value, by norm (clip_gradient_norm), and by global norm. `total_loss` is a configuration with a model, its
// loss and an input; if it has no length, the run is unbounded. `optimizer` replaces its optimizer. All processes of a
// run must create the same op.
//
// Errors: InvalidArgument with one line per problem. Names of variables and update ops that the model lacks are
// reported by a worker when it creates the model, before the first step.
absl::StatusOr<TrainOp> CreateTrainOp(config::v1::RunSpec total_loss, const config::v1::OptimizerConfig& optimizer,
                                      CreateTrainOpOptions options = {});

// Creates the op from configurations in text format.
absl::StatusOr<TrainOp> CreateTrainOp(const std::string& total_loss, const std::string& optimizer,
                                      CreateTrainOpOptions options = {});

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_CREATE_TRAIN_OP_H_

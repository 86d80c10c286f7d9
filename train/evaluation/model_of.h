#ifndef LOCKSTEP_TRAIN_EVALUATION_MODEL_OF_H_
#define LOCKSTEP_TRAIN_EVALUATION_MODEL_OF_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep::train {

// Creates the model that a TrainOp trains, in this process and without a run. If the op has make_workload, that
// function creates the model. Otherwise, the model is created from the configuration, for `examples` or, if that is
// null, for the training data, which are then opened. Errors: those of OpenDataset, CreateModel, make_workload and
// transform_model.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const TrainOp& op, const ExampleSpec* examples = nullptr);

// Returns the spec of the model that MakeModel creates. It lists the update ops and, in order, the variables, with
// their shapes and initializers and whether they are trained. The variable names are the ones that
// gradient_multipliers, variables_to_train and assignments accept. Errors: those of MakeModel.
absl::StatusOr<v1::ModelSpec> ModelOf(const TrainOp& op);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_MODEL_OF_H_

#ifndef LOCKSTEP_TRAIN_EVALUATION_MODEL_OF_H_
#define LOCKSTEP_TRAIN_EVALUATION_MODEL_OF_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/train/session/train_op.h"
#include "lockstep/v1/variable.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep::train {

// Makes the model that a TrainOp trains, in this process and without a run. A configured model is made for `examples`;
// if that is null, for the training data, which are opened. A model of make_workload is made by it. Errors: those of
// OpenDataset and CreateModel, of make_workload and of transform_model.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const TrainOp& op, const ExampleSpec* examples = nullptr);

// Returns the variables of that model, in their order, with shapes, initializers and which are trained, and its update
// ops: the names that gradient_multipliers, variables_to_train and assignments take. Errors: those of MakeModel.
absl::StatusOr<v1::ModelSpec> ModelOf(const TrainOp& op);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_MODEL_OF_H_

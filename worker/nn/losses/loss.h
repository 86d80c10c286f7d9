#ifndef LOCKSTEP_WORKER_NN_LOSSES_LOSS_H_
#define LOCKSTEP_WORKER_NN_LOSSES_LOSS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/worker/data/batch.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/losses/loss_op.h"

namespace lockstep {

// Creates the loss that reads layer `input`, whose output for one example has shape `output_shape`. Returns
// InvalidArgument if the outputs and the labels do not match.
absl::StatusOr<std::unique_ptr<LossOp>> CreateLoss(const config::v1::Loss& config, const std::string& input,
                                                   const Shape& output_shape, const ExampleSpec& examples);

// Returns InvalidArgument if labels or weights of `batch` do not match `examples`: dtype, shape, or a class out of
// range.
absl::Status CheckLabels(const Batch& batch, const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LOSSES_LOSS_H_

#ifndef LOCKSTEP_WORKER_NN_LOSSES_SOFTMAX_LOSS_H_
#define LOCKSTEP_WORKER_NN_LOSSES_SOFTMAX_LOSS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/losses/loss_op.h"

namespace lockstep {

// Creates a softmax cross-entropy loss. Returns InvalidArgument if there are fewer outputs than classes, or if the
// targets have a different length.
absl::StatusOr<std::unique_ptr<LossOp>> MakeSoftmaxLoss(const config::v1::Loss& config, const std::string& input,
                                                        const Shape& output_shape, const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LOSSES_SOFTMAX_LOSS_H_

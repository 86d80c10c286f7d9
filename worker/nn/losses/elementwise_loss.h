#ifndef LOCKSTEP_WORKER_NN_LOSSES_ELEMENTWISE_LOSS_H_
#define LOCKSTEP_WORKER_NN_LOSSES_ELEMENTWISE_LOSS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/losses/loss_op.h"

namespace lockstep {

// Creates a loss of any kind except softmax cross-entropy; see LossOp. Returns InvalidArgument if there are fewer
// outputs than classes (one output suffices for two classes), or if the targets have a different shape.
absl::StatusOr<std::unique_ptr<LossOp>> MakeElementwiseLoss(const config::v1::Loss& config, const std::string& input,
                                                            const Shape& output_shape, const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LOSSES_ELEMENTWISE_LOSS_H_

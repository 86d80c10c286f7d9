#ifndef LOCKSTEP_WORKER_NN_ELEMENTWISE_LOSS_H_
#define LOCKSTEP_WORKER_NN_ELEMENTWISE_LOSS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "proto/model.pb.h"
#include "worker/data/batch_source.h"
#include "worker/nn/loss_op.h"

namespace lockstep {

// Every kind of loss but softmax cross-entropy; see LossOp. InvalidArgument when the outputs are not as many as the
// classes (or 1, for two classes), or not of the targets' shape.
absl::StatusOr<std::unique_ptr<LossOp>> MakeElementwiseLoss(const Loss& config, const std::string& input,
                                                            const Shape& output_shape, const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_ELEMENTWISE_LOSS_H_

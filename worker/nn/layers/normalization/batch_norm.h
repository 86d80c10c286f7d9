#ifndef LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_BATCH_NORM_H_
#define LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_BATCH_NORM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a batch normalization layer (Ioffe and Szegedy 2015) over all dimensions but the last:
//   y = f(gamma (x - mean) / sqrt(variance + epsilon) + beta)
// Training uses the mean and the biased variance of the batch, sum((x - mean)^2) / n. The update ops of
// "<layer>/moving_mean" and "<layer>/moving_variance" report the same two numbers (TensorFlow's fused kernel would
// report the unbiased variance); evaluation uses these two variables instead. Variables "<layer>/gamma", "<layer>/beta"
// [channels] are trainable; the moving averages start at 0 and 1.
//
// Returns InvalidArgument for a scalar input, and for decay or epsilon out of range.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeBatchNorm(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_BATCH_NORM_H_

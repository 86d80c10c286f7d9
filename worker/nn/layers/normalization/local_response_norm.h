#ifndef LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_LOCAL_RESPONSE_NORM_H_
#define LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_LOCAL_RESPONSE_NORM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a local response normalization layer over the last dimension (kernels/nn/local_response.h has the formula),
// equivalent to tf.nn.local_response_normalization. It has no variables. Returns InvalidArgument for an input without
// dimensions, and for numbers out of range.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeLocalResponseNorm(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_LOCAL_RESPONSE_NORM_H_

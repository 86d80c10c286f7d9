#ifndef LOCKSTEP_WORKER_NN_LAYERS_IMAGES_SEPARABLE_CONV2D_H_
#define LOCKSTEP_WORKER_NN_LAYERS_IMAGES_SEPARABLE_CONV2D_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a depthwise convolution without bias or activation, followed by a 1 x 1 convolution with both
// (slim.separable_conv2d). The variables are "<layer>/depthwise/kernel" [kernel height, kernel width, channels,
// multiplier], "<layer>/pointwise/kernel" [1, 1, channels multiplier, filters] and "<layer>/pointwise/bias" [filters].
// Returns InvalidArgument in the same cases as the two layers.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeSeparableConv2d(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_IMAGES_SEPARABLE_CONV2D_H_

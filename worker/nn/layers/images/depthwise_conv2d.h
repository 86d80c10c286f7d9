#ifndef LOCKSTEP_WORKER_NN_LAYERS_IMAGES_DEPTHWISE_CONV2D_H_
#define LOCKSTEP_WORKER_NN_LAYERS_IMAGES_DEPTHWISE_CONV2D_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates the layer y[i, j, c m + q] = f(b[c m + q] + sum over ky, kx of x[i s + ky - p, j s + kx - p, c] W[ky, kx, c,
// q]): each channel c has its own m = `multiplier` kernels (tf.nn.depthwise_conv2d). "<layer>/kernel" W [kernel height,
// kernel width, channels, m], "<layer>/bias" b [channels m]. window.h defines the padding. Returns InvalidArgument for
// inputs that are not images, and for numbers out of range.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeDepthwiseConv2d(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_IMAGES_DEPTHWISE_CONV2D_H_

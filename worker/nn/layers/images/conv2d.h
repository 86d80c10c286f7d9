#ifndef LOCKSTEP_WORKER_NN_LAYERS_IMAGES_CONV2D_H_
#define LOCKSTEP_WORKER_NN_LAYERS_IMAGES_CONV2D_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates the layer y[i, j, n] = f(b[n] + sum over ky, kx, c of x[i s + ky - p, j s + kx - p, c] W[ky, kx, c, n]), a
// cross-correlation, as is usual for convolutional layers. x [batch, height, width, channels] ([batch, height, width]
// has one channel), "<layer>/kernel" W [kernel height, kernel width, channels, filters], "<layer>/bias" b [filters].
// window.h defines the padding. Returns InvalidArgument for other inputs, and if filters, kernel or strides are out of
// range.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeConv2d(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_IMAGES_CONV2D_H_

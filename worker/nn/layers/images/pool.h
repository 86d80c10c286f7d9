#ifndef LOCKSTEP_WORKER_NN_LAYERS_IMAGES_POOL_H_
#define LOCKSTEP_WORKER_NN_LAYERS_IMAGES_POOL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Create layers that compute the largest element, or the mean, of each window (window.h) of [height, width, channels],
// separately for each channel. Padding is ignored: it is never the largest element, and the mean covers only positions
// inside the input. The gradient of a maximum goes to the first element, row by row, that equals it. NaN counts as
// larger than any number. Return InvalidArgument for other inputs, for windows or strides out of range, and for windows
// that contain only padding.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeMaxPool(LayerBuilder* builder);
absl::StatusOr<std::unique_ptr<LayerOp>> MakeAveragePool(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_IMAGES_POOL_H_

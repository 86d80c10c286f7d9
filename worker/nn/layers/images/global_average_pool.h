#ifndef LOCKSTEP_WORKER_NN_LAYERS_IMAGES_GLOBAL_AVERAGE_POOL_H_
#define LOCKSTEP_WORKER_NN_LAYERS_IMAGES_GLOBAL_AVERAGE_POOL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a layer that reduces [batch, ..., d] to [batch, d] by averaging over the dimensions in the middle. Returns
// InvalidArgument if there are none.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeGlobalAveragePool(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_IMAGES_GLOBAL_AVERAGE_POOL_H_

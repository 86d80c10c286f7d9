#ifndef LOCKSTEP_WORKER_NN_LAYERS_IMAGES_FLATTEN_H_
#define LOCKSTEP_WORKER_NN_LAYERS_IMAGES_FLATTEN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Reshapes [batch, ...] to [batch, elements of an example] in the same memory.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeFlatten(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_IMAGES_FLATTEN_H_

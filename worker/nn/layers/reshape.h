#ifndef LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_
#define LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Reshapes [batch, ...] to [batch, shape...] in the same memory. One dimension of the shape may be -1 and is then
// inferred. Returns InvalidArgument if the elements of an example do not fit the shape.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeReshape(LayerBuilder* builder);

// Reshapes [batch, ...] to [batch, elements of an example] in the same memory.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeFlatten(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_

#ifndef LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_
#define LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a layer that reshapes [batch, ...] to [batch, shape...] in the same memory. One dimension of the shape may be
// -1 and is then inferred. Returns InvalidArgument if the number of elements in an example does not match the shape.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeReshape(LayerBuilder* builder);

// Creates a layer that reshapes [batch, ...] to [batch, elements of an example] in the same memory.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeFlatten(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_

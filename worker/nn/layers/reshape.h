#ifndef LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_
#define LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// [batch, ...] to [batch, shape...]: the same memory. One dimension of the shape may be -1, and is then what is left.
// InvalidArgument when the elements of an example do not make the shape.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeReshape(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_RESHAPE_H_

#ifndef LOCKSTEP_WORKER_NN_LAYERS_DENSE_H_
#define LOCKSTEP_WORKER_NN_LAYERS_DENSE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates the layer y = f(x W + b): x [batch, in], "<layer>/kernel" W [in, units], "<layer>/bias" b [units].
//
// Returns InvalidArgument for inputs of rank 2 or higher, and for units < 1.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeDense(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_DENSE_H_

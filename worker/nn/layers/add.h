#ifndef LOCKSTEP_WORKER_NN_LAYERS_ADD_H_
#define LOCKSTEP_WORKER_NN_LAYERS_ADD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a layer that returns the sum of two or more inputs, added in order. Returns InvalidArgument if two shapes
// differ; the message names both.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeAdd(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_ADD_H_

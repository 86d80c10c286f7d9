#ifndef LOCKSTEP_WORKER_NN_LAYERS_CONCAT_H_
#define LOCKSTEP_WORKER_NN_LAYERS_CONCAT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a layer that concatenates two or more inputs along their last dimension, in order: [..., c1] and [..., c2]
// become [..., c1 + c2]. Returns InvalidArgument if two shapes differ in another dimension; the message names both.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeConcat(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_CONCAT_H_

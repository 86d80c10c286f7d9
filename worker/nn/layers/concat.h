#ifndef LOCKSTEP_WORKER_NN_LAYERS_CONCAT_H_
#define LOCKSTEP_WORKER_NN_LAYERS_CONCAT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Joins two or more inputs along their last dimension, in order: [..., c1] and [..., c2] make [..., c1 + c2].
// InvalidArgument names two shapes that differ elsewhere.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeConcat(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_CONCAT_H_

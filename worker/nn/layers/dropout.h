#ifndef LOCKSTEP_WORKER_NN_LAYERS_DROPOUT_H_
#define LOCKSTEP_WORKER_NN_LAYERS_DROPOUT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a dropout layer (Srivastava et al. 2014), which scales in training and is the identity in evaluation. Element
// i of the batch, in row-major order, is kept and multiplied by 1 / (1 - rate) if the uniform random number in block i
// / 4, lane i % 4 of Philox::ForSlot(seed, "<layer name>", step, slot) is at least `rate`.
//
// Returns InvalidArgument for a rate outside [0, 1).
absl::StatusOr<std::unique_ptr<LayerOp>> MakeDropout(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_DROPOUT_H_

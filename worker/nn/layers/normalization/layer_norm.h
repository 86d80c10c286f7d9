#ifndef LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_LAYER_NORM_H_
#define LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_LAYER_NORM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates a layer normalization layer (Ba, Kiros and Hinton 2016) over the last dimension:
//   y = gamma (x - mean) / sqrt(variance + epsilon) + beta, with the biased variance.
// The variables are "<layer>/gamma" and "<layer>/beta" [last dimension]. Returns InvalidArgument for a scalar input,
// and for epsilon out of range.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeLayerNorm(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_NORMALIZATION_LAYER_NORM_H_

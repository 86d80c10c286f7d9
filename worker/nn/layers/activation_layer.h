#ifndef LOCKSTEP_WORKER_NN_LAYERS_ACTIVATION_LAYER_H_
#define LOCKSTEP_WORKER_NN_LAYERS_ACTIVATION_LAYER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/worker/nn/layers/layer_op.h"

namespace lockstep {

// Creates the layer y = f(x), elementwise. Returns InvalidArgument for a slope outside [0, 1], or if a slope is set for
// a function other than LEAKY_RELU.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeActivationLayer(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_LAYERS_ACTIVATION_LAYER_H_

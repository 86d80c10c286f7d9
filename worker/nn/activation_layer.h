#ifndef LOCKSTEP_WORKER_NN_ACTIVATION_LAYER_H_
#define LOCKSTEP_WORKER_NN_ACTIVATION_LAYER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/nn/layer_op.h"

namespace lockstep {

// y = f(x), elementwise. InvalidArgument for a slope outside [0, 1] or of another function than LEAKY_RELU.
absl::StatusOr<std::unique_ptr<LayerOp>> MakeActivationLayer(LayerBuilder* builder);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_ACTIVATION_LAYER_H_

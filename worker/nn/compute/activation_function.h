#ifndef LOCKSTEP_WORKER_NN_COMPUTE_ACTIVATION_FUNCTION_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_ACTIVATION_FUNCTION_H_

#include "lockstep/config/v1/model.pb.h"
#include "lockstep/kernels/vectors/activation_type.h"

namespace lockstep {

// The slope of LEAKY_RELU below zero if the configuration does not set one.
inline constexpr float kDefaultLeakySlope = 0.2f;

// An elementwise function. Only LEAKY_RELU reads `slope`. GELU is
// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel 2016).
// At 0, RELU, RELU6 and LEAKY_RELU have the same gradient as for x < 0. At 6, RELU6 has gradient 0. NaN stays NaN.
struct ActivationFunction {
  config::v1::Activation kind = config::v1::NONE;
  float slope = kDefaultLeakySlope;
};

// Returns true if f' is computed from x. The other derivatives are computed from y = f(x), so x need not be kept.
inline bool GradientNeedsInput(const ActivationFunction& f) { return f.kind == config::v1::GELU; }

// Converts `f` to the type that kernels take.
inline ActivationKernel KernelOf(const ActivationFunction& f) {
  switch (f.kind) {
    case config::v1::NONE:
      return {ActivationType::kIdentity};
    case config::v1::RELU:
      return {ActivationType::kRelu};
    case config::v1::RELU6:
      return {ActivationType::kRelu6};
    case config::v1::LEAKY_RELU:
      return {ActivationType::kLeakyRelu, f.slope};
    case config::v1::TANH:
      return {ActivationType::kTanh};
    case config::v1::SIGMOID:
      return {ActivationType::kSigmoid};
    case config::v1::GELU:
      return {ActivationType::kGelu};
    case config::v1::Activation_INT_MIN_SENTINEL_DO_NOT_USE_:
    case config::v1::Activation_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return {ActivationType::kIdentity};  // LayerBuilder::CheckActivation rejects other numbers.
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_ACTIVATION_FUNCTION_H_

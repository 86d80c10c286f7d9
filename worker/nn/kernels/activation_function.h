#ifndef LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_FUNCTION_H_
#define LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_FUNCTION_H_

#include "lockstep/config/v1/model.pb.h"

namespace lockstep {

// Slope of LEAKY_RELU below zero where the configuration names none.
inline constexpr float kDefaultLeakySlope = 0.2f;

// An elementwise function. LEAKY_RELU alone reads `slope`. GELU is
// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel 2016).
// The gradient of RELU and LEAKY_RELU at 0 is that of x < 0; NaN stays NaN.
struct ActivationFunction {
  config::v1::Activation kind = config::v1::NONE;
  float slope = kDefaultLeakySlope;
};

// True when f' is computed from x; for the others from y = f(x), so x need not be kept.
inline bool GradientNeedsInput(const ActivationFunction& f) { return f.kind == config::v1::GELU; }

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_FUNCTION_H_

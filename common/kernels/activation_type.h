#ifndef LOCKSTEP_COMMON_KERNELS_ACTIVATION_TYPE_H_
#define LOCKSTEP_COMMON_KERNELS_ACTIVATION_TYPE_H_

namespace lockstep {

enum class ActivationType { kIdentity, kRelu, kLeakyRelu, kTanh, kSigmoid, kGelu };

// An elementwise function, as kernels take it; kLeakyRelu alone reads `slope`. GELU is
// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel 2016).
// The gradient of kRelu and kLeakyRelu at 0 is that of x < 0; NaN stays NaN.
struct ActivationKernel {
  ActivationType type = ActivationType::kIdentity;
  float slope = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_KERNELS_ACTIVATION_TYPE_H_

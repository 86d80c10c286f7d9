#ifndef LOCKSTEP_KERNELS_VECTORS_ACTIVATION_TYPE_H_
#define LOCKSTEP_KERNELS_VECTORS_ACTIVATION_TYPE_H_

namespace lockstep {

enum class ActivationType { kIdentity, kRelu, kLeakyRelu, kTanh, kSigmoid, kGelu, kRelu6 };

// An elementwise function. Only kLeakyRelu reads `slope`. GELU is
//   x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel 2016).
// At 0, kRelu, kRelu6 and kLeakyRelu have the same gradient as for x < 0. At 6, the gradient of kRelu6 is 0. NaN stays
// NaN. The error of GELU is at most 2.1e-7 |x|, and for x > 0 also at most 3.1 units of the result's last place if the
// result is a normal number. The error of its gradient is at most 3.9e-6 |dy| for |x| < 2^64, beyond which the gradient
// is dy or 0. math.h lists the errors of tanh and the sigmoid.
struct ActivationKernel {
  ActivationType type = ActivationType::kIdentity;
  float slope = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_ACTIVATION_TYPE_H_

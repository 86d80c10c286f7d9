#ifndef LOCKSTEP_WORKER_NN_TESTING_REFERENCE_ACTIVATION_H_
#define LOCKSTEP_WORKER_NN_TESTING_REFERENCE_ACTIVATION_H_

#include <cmath>

#include "lockstep/worker/nn/compute/activation_function.h"

namespace lockstep {

// f(x) in double precision, as activation_function.h defines it.
inline double ReferenceActivation(const ActivationFunction& f, double x) {
  switch (f.kind) {
    case config::v1::NONE:
      return x;
    case config::v1::RELU:
      return x > 0 ? x : 0;
    case config::v1::RELU6:
      return x > 6 ? 6 : x > 0 ? x : 0;
    case config::v1::LEAKY_RELU:
      return x > 0 ? x : f.slope * x;
    case config::v1::TANH:
      return std::tanh(x);
    case config::v1::SIGMOID:
      return 1 / (1 + std::exp(-x));
    case config::v1::GELU:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case config::v1::Activation_INT_MIN_SENTINEL_DO_NOT_USE_:
    case config::v1::Activation_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return std::nan("");
}

inline constexpr config::v1::Activation kAllActivations[] = {
    config::v1::NONE,    config::v1::RELU, config::v1::LEAKY_RELU, config::v1::TANH,
    config::v1::SIGMOID, config::v1::GELU, config::v1::RELU6};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_TESTING_REFERENCE_ACTIVATION_H_

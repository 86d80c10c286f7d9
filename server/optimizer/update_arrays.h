#ifndef LOCKSTEP_SERVER_OPTIMIZER_UPDATE_ARRAYS_H_
#define LOCKSTEP_SERVER_OPTIMIZER_UPDATE_ARRAYS_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "lockstep/kernels/update_rules.h"

namespace lockstep {

// Converts the arguments of Optimizer::Apply to the form that kernels take.
inline UpdateArrays MakeUpdateArrays(int64_t n, const float* gradient, float gradient_divisor, const float* value_in,
                                     float* value_out, absl::Span<const float* const> state_in,
                                     absl::Span<float* const> state_out) {
  UpdateArrays arrays{n, gradient, gradient_divisor, value_in, value_out, {}, {}};
  std::copy_n(state_in.begin(), std::min<size_t>(state_in.size(), kMostUpdateStates), arrays.state_in);
  std::copy_n(state_out.begin(), std::min<size_t>(state_out.size(), kMostUpdateStates), arrays.state_out);
  return arrays;
}

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_UPDATE_ARRAYS_H_

#ifndef LOCKSTEP_SERVER_OPTIMIZER_ELEMENTWISE_H_
#define LOCKSTEP_SERVER_OPTIMIZER_ELEMENTWISE_H_

#include <cstdint>

#include "absl/types/span.h"

// The iterations of the next loop do not depend on each other, although an output may be its own input.
#ifdef __clang__
#define LOCKSTEP_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOCKSTEP_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace lockstep {

// Calls rule(gradient, value, state_0, ..., slot_{kStates-1}) for every element: the gradient by value and
// divided, the others as float& that hold the old numbers and receive the new ones.
// The rule is plain arithmetic and std::sqrt, which the processor rounds correctly one by one or eight at
// a time: the bits do not depend on alignment or on where a range is cut.
template <int kStates, typename Rule>
void ForEachElement(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
                    absl::Span<const float* const> state_in, absl::Span<float* const> state_out, Rule rule) {
  static_assert(kStates >= 0 && kStates <= 3, "add a case");
  const float* const in0 = kStates > 0 ? state_in[0] : nullptr;
  const float* const in1 = kStates > 1 ? state_in[1] : nullptr;
  const float* const in2 = kStates > 2 ? state_in[2] : nullptr;
  float* const out0 = kStates > 0 ? state_out[0] : nullptr;
  float* const out1 = kStates > 1 ? state_out[1] : nullptr;
  float* const out2 = kStates > 2 ? state_out[2] : nullptr;
  LOCKSTEP_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] / gradient_divisor;
    float value = value_in[i];
    if constexpr (kStates == 0) {
      rule(g, value);
    } else if constexpr (kStates == 1) {
      float state0 = in0[i];
      rule(g, value, state0);
      out0[i] = state0;
    } else if constexpr (kStates == 2) {
      float state0 = in0[i];
      float state1 = in1[i];
      rule(g, value, state0, state1);
      out0[i] = state0;
      out1[i] = state1;
    } else {
      float state0 = in0[i];
      float state1 = in1[i];
      float state2 = in2[i];
      rule(g, value, state0, state1, state2);
      out0[i] = state0;
      out1[i] = state1;
      out2[i] = state2;
    }
    value_out[i] = value;
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_ELEMENTWISE_H_

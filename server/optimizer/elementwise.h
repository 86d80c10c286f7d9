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

// Calls rule(gradient, value, slot_0, ..., slot_{kSlots-1}) for every element: the gradient by value and
// divided, the rest as float& that hold the old numbers and receive the new ones.
// The rule is plain arithmetic and std::sqrt, which the processor rounds correctly one by one or eight at
// a time: the bits do not depend on alignment or on where a range is cut.
template <int kSlots, typename Rule>
void ForEachElement(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
                    absl::Span<const float* const> slots_in, absl::Span<float* const> slots_out, Rule rule) {
  static_assert(kSlots >= 0 && kSlots <= 3, "add a case");
  const float* const in0 = kSlots > 0 ? slots_in[0] : nullptr;
  const float* const in1 = kSlots > 1 ? slots_in[1] : nullptr;
  const float* const in2 = kSlots > 2 ? slots_in[2] : nullptr;
  float* const out0 = kSlots > 0 ? slots_out[0] : nullptr;
  float* const out1 = kSlots > 1 ? slots_out[1] : nullptr;
  float* const out2 = kSlots > 2 ? slots_out[2] : nullptr;
  LOCKSTEP_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] / gradient_divisor;
    float value = value_in[i];
    if constexpr (kSlots == 0) {
      rule(g, value);
    } else if constexpr (kSlots == 1) {
      float slot0 = in0[i];
      rule(g, value, slot0);
      out0[i] = slot0;
    } else if constexpr (kSlots == 2) {
      float slot0 = in0[i];
      float slot1 = in1[i];
      rule(g, value, slot0, slot1);
      out0[i] = slot0;
      out1[i] = slot1;
    } else {
      float slot0 = in0[i];
      float slot1 = in1[i];
      float slot2 = in2[i];
      rule(g, value, slot0, slot1, slot2);
      out0[i] = slot0;
      out1[i] = slot1;
      out2[i] = slot2;
    }
    value_out[i] = value;
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_ELEMENTWISE_H_

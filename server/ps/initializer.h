#ifndef LOCKSTEP_SERVER_PS_INITIALIZER_H_
#define LOCKSTEP_SERVER_PS_INITIALIZER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "lockstep/common/config/validation/validation.h"  // IWYU pragma: export (ValidateInitializer)
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// Fills `out` (the variable's elements, row-major) with its initial value: a function of the
// run's seed, the variable's name, its shape and its initializer, the same on every machine.
// Fans are those of TensorFlow's variance scaling: for [in, out] those two, for a convolution
// kernel [h, w, in, out] times h * w. Its initializer must
// be valid (ValidateInitializer).
void InitializeVariable(const v1::VariableSpec& variable, uint64_t seed, absl::Span<float> out);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_INITIALIZER_H_

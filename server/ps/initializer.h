#ifndef LOCKSTEP_SERVER_PS_INITIALIZER_H_
#define LOCKSTEP_SERVER_PS_INITIALIZER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "lockstep/common/config/validation/validation.h"  // IWYU pragma: export (ValidateInitializer)
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// Fills `out` (the variable's elements, row-major) with initial values. They depend only on the run's seed and the
// variable's name, shape and initializer, and are the same on every machine. Fans are computed as in TensorFlow's
// variance scaling: in and out for [in, out], times h * w for a convolution kernel [h, w, in, out]. The initializer
// must be valid (ValidateInitializer).
void InitializeVariable(const v1::VariableSpec& variable, uint64_t seed, absl::Span<float> out);
// Does the same for a variable of any type. `out` has its bytes, aligned like its elements.
void InitializeVariable(const v1::VariableSpec& variable, uint64_t seed, absl::Span<char> out);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_INITIALIZER_H_

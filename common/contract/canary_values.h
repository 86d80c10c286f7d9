#ifndef LOCKSTEP_COMMON_CONTRACT_CANARY_VALUES_H_
#define LOCKSTEP_COMMON_CONTRACT_CANARY_VALUES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// Fills `out` with the values on which a worker joining a run computes its canary: elements `offset`, offset + 1, ...
// of the variable, where `offset` is a multiple of 4. They are drawn from Philox (seed, "canary", name) and are the
// same on every machine. A variable with at most one dimension gets numbers in [0.5, 1.5). Any other gets uniform
// numbers in +-sqrt(3 / n), where n is the number of its elements divided by its last dimension, so that outputs keep
// the magnitude of inputs through many layers. For float32 variables; the others are 0.
void FillCanaryValues(uint64_t seed, const ParameterLayout::Variable& variable, int64_t offset, absl::Span<float> out);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_CANARY_VALUES_H_

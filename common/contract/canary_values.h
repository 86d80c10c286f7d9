#ifndef LOCKSTEP_COMMON_CONTRACT_CANARY_VALUES_H_
#define LOCKSTEP_COMMON_CONTRACT_CANARY_VALUES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "lockstep/common/tensor/parameter_layout.h"

namespace lockstep {

// The values on which a worker that joins a run computes its canary, elements `offset`, offset + 1, ... of the
// variable, `offset` being a multiple of 4: drawn from Philox (seed, "canary", name), the same on every machine. A
// variable of one dimension, or none, gets numbers in [0.5, 1.5), any other one uniform numbers in +-sqrt(3 / n), n its
// elements divided by its last dimension: outputs keep the size of inputs through many layers.
void FillCanaryValues(uint64_t seed, const ParameterLayout::Variable& variable, int64_t offset, absl::Span<float> out);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_CANARY_VALUES_H_

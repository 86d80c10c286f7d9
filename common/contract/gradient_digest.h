#ifndef LOCKSTEP_COMMON_CONTRACT_GRADIENT_DIGEST_H_
#define LOCKSTEP_COMMON_CONTRACT_GRADIENT_DIGEST_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

// kAsTheyAre saves a third of the time, where a NaN ends the run whatever its digest is.
enum class NaNs { kAlike, kAsTheyAre };

// The digest by which two copies of a gradient are compared, and the canary's: CRC-64/XZ (ECMA-182, reflected, inverted
// before and after) of the little-endian bytes, every NaN as 0x7fc00000, unless as it is: which of them a processor
// makes is not agreed. Any one run of up to 64 wrong bits changes it, from NaN to NaN excepted; of other differences
// one in 2^64 does not. Not for secrets.
uint64_t GradientDigest(absl::Span<const float> values, NaNs nans = NaNs::kAlike);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_GRADIENT_DIGEST_H_

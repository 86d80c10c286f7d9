#ifndef LOCKSTEP_COMMON_CONTRACT_GRADIENT_DIGEST_H_
#define LOCKSTEP_COMMON_CONTRACT_GRADIENT_DIGEST_H_

#include <cstdint>

#include "absl/types/span.h"
#include "lockstep/common/tensor/elements.h"

namespace lockstep {

// The treatment of NaNs in a digest: all alike, or with their own bits. kAsTheyAre saves a third of the time. Use it
// where a NaN ends the run regardless of the digest.
enum class NaNs { kAlike, kAsTheyAre };

// Returns the digest by which copies of a gradient, or canaries, are compared: CRC-64/XZ (ECMA-182, reflected, inverted
// before and after) of the little-endian bytes. Unless `nans` is kAsTheyAre, every NaN counts as 0x7fc00000, because
// processors produce different NaNs. Detects any single run of up to 64 wrong bits, unless it turns one NaN into
// another, and misses one in 2^64 of the other differences. Not cryptographic.
uint64_t GradientDigest(absl::Span<const float> values, NaNs nans = NaNs::kAlike);
// Returns the same digest of the value of an update op, which may have integers.
uint64_t UpdateDigest(const Elements& value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONTRACT_GRADIENT_DIGEST_H_

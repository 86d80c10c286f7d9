#include "lockstep/common/contract/gradient_digest.h"

#include <isa-l/crc64.h>

#include <cmath>
#include <cstring>

namespace lockstep {

uint64_t GradientDigest(absl::Span<const float> values) {
  // ISA-L inverts before and after, and does not write to what it reads.
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  return crc64_ecma_refl(0, bytes, values.size() * sizeof(float));
}

void UnifyNaNs(absl::Span<float> values) {
  constexpr uint32_t kNaN = 0x7fc00000;
  for (float& value : values) {
    if (std::isnan(value)) std::memcpy(&value, &kNaN, sizeof(value));
  }
}

}  // namespace lockstep

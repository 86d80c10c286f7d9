#include "lockstep/common/contract/gradient_digest.h"

#include <isa-l/crc64.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/kernels/rounding.h"

namespace lockstep {
namespace {

// Number of elements digested at a time, few enough to stay in the L1 cache.
constexpr size_t kBlock = 2048;

// ISA-L inverts the digest before and after, so digests of consecutive parts can be chained. It does not write to its
// input.
uint64_t Continue(uint64_t digest, const float* values, size_t size) {
  return crc64_ecma_refl(digest, reinterpret_cast<const unsigned char*>(values), size * sizeof(float));
}

void CopyWithOneNaN(absl::Span<const float> values, float* out) {
  constexpr uint32_t kNaN = 0x7fc00000;
  float nan;
  std::memcpy(&nan, &kNaN, sizeof(nan));
  std::transform(values.begin(), values.end(), out, [nan](float x) { return std::isnan(x) ? nan : x; });
}

}  // namespace

uint64_t GradientDigest(absl::Span<const float> values, NaNs nans) {
  if (nans == NaNs::kAsTheyAre) return Continue(0, values.data(), values.size());
  uint64_t digest = 0;
  for (size_t at = 0; at < values.size(); at += kBlock) {
    const absl::Span<const float> block = values.subspan(at, kBlock);
    uint64_t next = Continue(digest, block.data(), block.size());
    if (!AllValuesFinite(static_cast<int64_t>(block.size()), block.data())) {
      float copy[kBlock];
      CopyWithOneNaN(block, copy);
      next = Continue(digest, copy, block.size());
    }
    digest = next;
  }
  return digest;
}

uint64_t UpdateDigest(const Elements& value) {
  if (value.dtype() == v1::DT_FLOAT) return GradientDigest({value.as<float>(), static_cast<size_t>(value.size())});
  return crc64_ecma_refl(0, value.as<unsigned char>(), value.bytes().size());
}

}  // namespace lockstep

#include "lockstep/kernels/normalize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normalize.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Returns x / divisor, given inverse = 1 / divisor. Multiplies by the inverse and corrects the product by its remainder
// (Markstein).
HWY_INLINE FloatVector DivideByMultiplying(FloatVector x, FloatVector divisor, FloatVector inverse) {
  const FloatVector quotient = hn::Mul(x, inverse);
  return hn::MulAdd(hn::NegMulAdd(quotient, divisor, x), inverse, quotient);
}

// Returns byte / 255, rounded like a division. A test checks all 256 bytes.
HWY_INLINE FloatVector FractionsOf255(const uint8_t* bytes) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const hn::Rebind<uint8_t, Floats> d8;
  const FloatVector byte = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, bytes)));
  return DivideByMultiplying(byte, hn::Set(d, 255.0f), hn::Set(d, 1.0f / 255.0f));
}

// Writes f(fractions) to `out` for each vector of bytes. Pads a partial last vector with zeros.
template <class F>
HWY_INLINE void ForEachVector(int64_t size, const uint8_t* bytes, float* out, F f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kFloatLanes <= size; i += kFloatLanes) hn::StoreU(f(FractionsOf255(bytes + i)), d, out + i);
  if (i == size) return;
  uint8_t padded[kFloatLanes] = {};
  std::copy_n(bytes + i, size - i, padded);
  StorePart(f(FractionsOf255(padded)), d, out + i, size - i);
}

void BytesOnTarget(const ByteNormalization& normalization, int64_t size, const uint8_t* bytes, float* out) {
  const Floats d;
  const FloatVector mean = hn::Set(d, normalization.mean);
  const FloatVector stddev = hn::Set(d, normalization.stddev);
  const FloatVector inverse = hn::Set(d, normalization.inverse);
  if (normalization.mean == 0 && normalization.stddev == 1) {
    ForEachVector(size, bytes, out, [](FloatVector x) HWY_ATTR { return x; });
  } else if (normalization.multiplies) {
    ForEachVector(size, bytes, out,
                  [&](FloatVector x) HWY_ATTR { return DivideByMultiplying(hn::Sub(x, mean), stddev, inverse); });
  } else {
    ForEachVector(size, bytes, out, [&](FloatVector x) HWY_ATTR { return hn::Div(hn::Sub(x, mean), stddev); });
  }
}

void FloatsOnTarget(float mean, float stddev, int64_t size, float* values) {
  const Floats d;
  Transform(size, values, values,
            [&](FloatVector x) HWY_ATTR { return hn::Div(hn::Sub(x, hn::Set(d, mean)), hn::Set(d, stddev)); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(BytesOnTarget);
HWY_EXPORT(FloatsOnTarget);

ByteNormalization::ByteNormalization(float mean, float stddev)
    : mean(mean), stddev(stddev), inverse(1.0f / stddev), multiplies(true) {
  for (int byte = 0; byte < 256; ++byte) {
    const float x = static_cast<float>(byte) / 255.0f - mean;
    const float quotient = x * inverse;
    const float corrected = std::fma(std::fma(-quotient, stddev, x), inverse, quotient);
    const float exact = x / stddev;
    if (std::memcmp(&corrected, &exact, sizeof(exact)) != 0) multiplies = false;
  }
}

void NormalizeBytes(const ByteNormalization& normalization, int64_t size, const uint8_t* bytes, float* out) {
  HWY_DYNAMIC_DISPATCH(BytesOnTarget)(normalization, size, bytes, out);
}

void NormalizeFloats(float mean, float stddev, int64_t size, float* values) {
  HWY_DYNAMIC_DISPATCH(FloatsOnTarget)(mean, stddev, size, values);
}

}  // namespace lockstep
#endif  // HWY_ONCE

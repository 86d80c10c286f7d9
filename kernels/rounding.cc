#include "lockstep/kernels/rounding.h"

#include <cstring>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rounding.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// A vector of 16-bit numbers with as many lanes as a vector of floats.
using Shorts = hn::Rebind<uint16_t, Floats>;
using ShortVector = hn::Vec<Shorts>;
using Words = hn::RebindToSigned<Floats>;

struct Bfloat16 {
  static HWY_INLINE ShortVector Encode(FloatVector values) {
    const Words d;
    const auto bits = hn::BitCast(d, values);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffff));
    const auto infinity = hn::Set(d, 0x7f800000);
    const auto high = [&](hn::Vec<Words> x) HWY_ATTR { return hn::And(hn::ShiftRight<16>(x), hn::Set(d, 0xffff)); };
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    auto rounded = high(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fff))));
    // Finite numbers that were rounded up to infinity become the largest finite number.
    const auto is_infinity = hn::Eq(hn::And(rounded, hn::Set(d, 0x7fff)), hn::Set(d, 0x7f80));
    const auto overflown = hn::And(is_infinity, hn::Gt(infinity, magnitude));
    rounded = hn::IfThenElse(overflown, hn::Sub(rounded, hn::Set(d, 1)), rounded);
    rounded = hn::IfThenElse(hn::Gt(magnitude, infinity), hn::Set(d, 0x7fc0), rounded);
    return hn::DemoteTo(Shorts(), rounded);
  }
  static HWY_INLINE FloatVector Decode(ShortVector numbers) {
    const hn::RebindToUnsigned<Floats> d;
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(d, numbers)));
  }
};

struct Half {
  using Halves = hn::Rebind<hwy::float16_t, Floats>;

  static HWY_INLINE ShortVector Encode(FloatVector values) {
    const Floats d;
    const FloatVector magnitude = hn::Abs(values);
    const FloatVector limit = hn::Set(d, 65504.0f);
    const FloatVector infinity = hn::BitCast(d, hn::Set(Words(), 0x7f800000));
    const auto overflown = hn::And(hn::Gt(magnitude, limit), hn::Lt(magnitude, infinity));
    values = hn::IfThenElse(overflown, hn::CopySign(limit, values), values);
    values = hn::IfThenElse(hn::Eq(values, values), values, hn::BitCast(d, hn::Set(Words(), 0x7fc00000)));
    return hn::BitCast(Shorts(), hn::DemoteTo(Halves(), values));
  }
  static HWY_INLINE FloatVector Decode(ShortVector numbers) {
    return hn::PromoteTo(Floats(), hn::BitCast(Halves(), numbers));
  }
};

HWY_INLINE ShortVector LoadShorts(const char* bytes) {
  return hn::LoadU(Shorts(), reinterpret_cast<const uint16_t*>(bytes));
}
// Loads the first `count` numbers.
HWY_INLINE ShortVector LoadShortPart(const char* bytes, int64_t count) {
  uint16_t padded[kFloatLanes] = {};
  std::memcpy(padded, bytes, static_cast<size_t>(count) * sizeof(uint16_t));
  return hn::LoadU(Shorts(), padded);
}

template <class Type>
HWY_INLINE void RoundAll(int64_t n, float* values) {
  Transform(n, values, values, [](FloatVector x) HWY_ATTR { return Type::Decode(Type::Encode(x)); });
}

template <class Type>
HWY_INLINE void EncodeAll(int64_t n, const float* values, uint16_t* out) {
  const Floats d;
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) hn::StoreU(Type::Encode(hn::LoadU(d, values + i)), Shorts(), out + i);
  if (i == n) return;
  uint16_t numbers[kFloatLanes];
  hn::StoreU(Type::Encode(LoadPart(d, values + i, n - i)), Shorts(), numbers);
  std::memcpy(out + i, numbers, static_cast<size_t>(n - i) * sizeof(uint16_t));
}

// Adds to the contents of `out` if kAdds is true.
template <class Type, bool kAdds>
HWY_INLINE void DecodeAll(int64_t n, const char* bytes, float* out) {
  const Floats d;
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) {
    const FloatVector x = Type::Decode(LoadShorts(bytes + i * sizeof(uint16_t)));
    hn::StoreU(kAdds ? hn::Add(hn::LoadU(d, out + i), x) : x, d, out + i);
  }
  if (i == n) return;
  const FloatVector x = Type::Decode(LoadShortPart(bytes + i * sizeof(uint16_t), n - i));
  StorePart(kAdds ? hn::Add(LoadPart(d, out + i, n - i), x) : x, d, out + i, n - i);
}

void RoundOnTarget(ShortFloat type, int64_t n, float* values) {
  type == ShortFloat::kBfloat16 ? RoundAll<Bfloat16>(n, values) : RoundAll<Half>(n, values);
}
void EncodeOnTarget(ShortFloat type, int64_t n, const float* values, uint16_t* out) {
  type == ShortFloat::kBfloat16 ? EncodeAll<Bfloat16>(n, values, out) : EncodeAll<Half>(n, values, out);
}
void DecodeOnTarget(ShortFloat type, int64_t n, const char* bytes, float* out) {
  type == ShortFloat::kBfloat16 ? DecodeAll<Bfloat16, false>(n, bytes, out) : DecodeAll<Half, false>(n, bytes, out);
}
void DecodeAndAddOnTarget(ShortFloat type, int64_t n, const char* bytes, float* out) {
  type == ShortFloat::kBfloat16 ? DecodeAll<Bfloat16, true>(n, bytes, out) : DecodeAll<Half, true>(n, bytes, out);
}

void AddOnTarget(int64_t n, const char* bytes, float* out) {
  const Floats d;
  const hn::Repartition<uint8_t, Floats> d8;
  const auto* p = reinterpret_cast<const uint8_t*>(bytes);
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) {
    const FloatVector x = hn::BitCast(d, hn::LoadU(d8, p + i * sizeof(float)));
    hn::StoreU(hn::Add(hn::LoadU(d, out + i), x), d, out + i);
  }
  if (i == n) return;
  float padded[kFloatLanes] = {};
  std::memcpy(padded, bytes + i * sizeof(float), static_cast<size_t>(n - i) * sizeof(float));
  StorePart(hn::Add(LoadPart(d, out + i, n - i), hn::LoadU(d, padded)), d, out + i, n - i);
}

// x * 0 is NaN when x is NaN or infinite, and 0 otherwise.
bool FiniteOnTarget(int64_t n, const float* values) {
  const Floats d;
  const FloatVector zero = hn::Zero(d);
  FloatVector sums[4] = {zero, zero, zero, zero};
  int64_t i = 0;
  for (; i + 4 * kFloatLanes <= n; i += 4 * kFloatLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sums[k] = hn::MulAdd(hn::LoadU(d, values + i + k * kFloatLanes), zero, sums[k]);
  }
  for (; i < n; i += kFloatLanes) sums[0] = hn::MulAdd(LoadUpTo(d, values + i, n - i), zero, sums[0]);
  const FloatVector sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::AllTrue(d, hn::Eq(sum, zero));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(RoundOnTarget);
HWY_EXPORT(EncodeOnTarget);
HWY_EXPORT(DecodeOnTarget);
HWY_EXPORT(DecodeAndAddOnTarget);
HWY_EXPORT(AddOnTarget);
HWY_EXPORT(FiniteOnTarget);

void RoundToShort(ShortFloat type, int64_t n, float* values) { HWY_DYNAMIC_DISPATCH(RoundOnTarget)(type, n, values); }
void EncodeShort(ShortFloat type, int64_t n, const float* values, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(EncodeOnTarget)(type, n, values, out);
}
void DecodeShort(ShortFloat type, int64_t n, const char* bytes, float* out) {
  HWY_DYNAMIC_DISPATCH(DecodeOnTarget)(type, n, bytes, out);
}
void DecodeAndAddShort(ShortFloat type, int64_t n, const char* bytes, float* out) {
  HWY_DYNAMIC_DISPATCH(DecodeAndAddOnTarget)(type, n, bytes, out);
}
void AddFloats(int64_t n, const char* bytes, float* out) { HWY_DYNAMIC_DISPATCH(AddOnTarget)(n, bytes, out); }
bool AllValuesFinite(int64_t n, const float* values) { return HWY_DYNAMIC_DISPATCH(FiniteOnTarget)(n, values); }

}  // namespace lockstep
#endif  // HWY_ONCE

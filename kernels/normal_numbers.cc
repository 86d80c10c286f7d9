#include "lockstep/kernels/normal_numbers.h"

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normal_numbers.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/elementary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using Doubles = hn::ScalableTag<double>;
using DoubleVector = hn::Vec<Doubles>;

// ln u, for normal u in (0, 1].
HWY_INLINE DoubleVector LogOfFraction(DoubleVector u) {
  const Doubles d;
  const hn::RebindToSigned<Doubles> di;
  const auto bits = hn::BitCast(di, u);
  // u = 2^k m. After the bits of sqrt(1/2) are subtracted from those of u, the upper 12 bits are k.
  const auto beyond = hn::Sub(bits, hn::Set(di, kSqrtHalfBits));
  const auto exponent = hn::And(beyond, hn::Set(di, -(int64_t{1} << 52)));
  const DoubleVector m = hn::BitCast(d, hn::Sub(bits, exponent));
  // k + 32 is in [0, 32]. The last place of 2^52 is 1, so setting these bits in 2^52 adds k + 32.
  const auto whole = hn::ShiftRight<52>(
      hn::BitCast(hn::RebindToUnsigned<Doubles>(), hn::Add(exponent, hn::Set(di, int64_t{32} << 52))));
  const DoubleVector magic = hn::Set(d, 0x1p52);
  const DoubleVector k =
      hn::Sub(hn::Sub(hn::BitCast(d, hn::Or(whole, hn::BitCast(hn::RebindToUnsigned<Doubles>(), magic))), magic),
              hn::Set(d, 32.0));
  return LogOfScaled(k, LogOfMantissa(kLogSeries, Pair<DoubleVector>{m, hn::Zero(d)})).high;
}

// sin a and cos a, for a in [0, 2 pi].
HWY_INLINE void SinAndCos(DoubleVector a, DoubleVector* sin, DoubleVector* cos) {
  const Doubles d;
  const auto c = [&](double x) HWY_ATTR { return hn::Set(d, x); };
  const DoubleVector k = hn::Floor(hn::MulAdd(a, c(kTwoByPi), c(0.5)));
  const Pair<DoubleVector> r = WithoutQuarters(a, k);
  const Pair<DoubleVector> square = Times(r, r);
  const DoubleVector s = Times(r, SumOf(kSinSeries, square)).high;
  const DoubleVector co = SumOf(kCosSeries, square).high;
  // For k = 0, ..., 4, sin a is s, co, -s, -co, s and cos a is co, -s, -co, s, co.
  const auto odd = hn::Or(hn::Eq(k, c(1)), hn::Eq(k, c(3)));
  const DoubleVector sin_size = hn::IfThenElse(odd, co, s);
  const DoubleVector cos_size = hn::IfThenElse(odd, s, co);
  const auto sin_negative = hn::Or(hn::Eq(k, c(2)), hn::Eq(k, c(3)));
  const auto cos_negative = hn::Or(hn::Eq(k, c(1)), hn::Eq(k, c(2)));
  *sin = hn::IfThenElse(sin_negative, hn::Neg(sin_size), sin_size);
  *cos = hn::IfThenElse(cos_negative, hn::Neg(cos_size), cos_size);
}

void PairsOnTarget(const uint32_t* words, double* first, double* second) {
  constexpr double kTwoPi = 0x1.921fb54442d18p+2;
  const Doubles d;
  alignas(64) double u[kNormalPairs], a[kNormalPairs];
  for (int i = 0; i < kNormalPairs; ++i) {
    u[i] = (static_cast<double>(words[2 * i]) + 1.0) * 0x1p-32;
    a[i] = kTwoPi * static_cast<double>(words[2 * i + 1]) * 0x1p-32;
  }
  for (int i = 0; i < kNormalPairs; i += static_cast<int>(hn::MaxLanes(d))) {
    const DoubleVector radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), LogOfFraction(hn::Load(d, u + i))));
    DoubleVector sin, cos;
    SinAndCos(hn::Load(d, a + i), &sin, &cos);
    hn::StoreU(hn::Mul(radius, cos), d, first + i);
    hn::StoreU(hn::Mul(radius, sin), d, second + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(PairsOnTarget);

void NormalPairs(const uint32_t* words, double* first, double* second) {
  HWY_DYNAMIC_DISPATCH(PairsOnTarget)(words, first, second);
}

}  // namespace lockstep
#endif  // HWY_ONCE

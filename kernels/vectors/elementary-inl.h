// Building blocks of logarithms, sines, cosines and exponentials in double precision: pairs of doubles and power
// series, for V = double and for vectors of doubles. Compiled once for each target. They use only operations that every
// processor rounds in the same way, in a fixed order, so that a vector's lane has the same bits as the scalar functions
// (portable_math.h).
#if defined(LOCKSTEP_KERNELS_VECTORS_ELEMENTARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_ELEMENTARY_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_ELEMENTARY_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_ELEMENTARY_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE double Fma(double a, double b, double c) { return std::fma(a, b, c); }
template <class V>
HWY_INLINE V Fma(V a, V b, V c) {
  return hn::MulAdd(a, b, c);
}

// Sets every lane of a V to `x`.
template <class V>
struct Lanes {
  static HWY_INLINE V Of(double x) { return hn::Set(hn::DFromV<V>(), x); }
};
template <>
struct Lanes<double> {
  static HWY_INLINE double Of(double x) { return x; }
};

// A number represented as the unevaluated sum of two doubles: `high` is the sum rounded to double, and `low` is the
// remainder. Its precision is about 106 bits unless something underflows. The algorithms are Dekker's (1971) and
// Knuth's, with a fused multiply-add for products.
template <class V>
struct Pair {
  V high;
  V low;
};

struct PairConstant {
  template <class V>
  HWY_INLINE Pair<V> As() const {
    return {Lanes<V>::Of(high), Lanes<V>::Of(low)};
  }
  double high;
  double low;
};

// a + b, exactly.
template <class V>
HWY_INLINE Pair<V> ExactSum(V a, V b) {
  const V sum = a + b;
  const V part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// a + b, exactly, if |a| >= |b| or a is 0.
template <class V>
HWY_INLINE Pair<V> ExactSumOfOrdered(V a, V b) {
  const V sum = a + b;
  return {sum, b - (sum - a)};
}

// a * b, exactly.
template <class V>
HWY_INLINE Pair<V> ExactProduct(V a, V b) {
  const V product = a * b;
  return {product, Fma(a, b, Lanes<V>::Of(-0.0) - product)};
}

// The following functions have a relative error of a few times 2^-104.
template <class V>
HWY_INLINE Pair<V> Plus(Pair<V> a, Pair<V> b) {
  Pair<V> sum = ExactSum(a.high, b.high);
  const Pair<V> lows = ExactSum(a.low, b.low);
  sum = ExactSumOfOrdered(sum.high, sum.low + lows.high);
  return ExactSumOfOrdered(sum.high, sum.low + lows.low);
}

// |a| must be at least twice |b|.
template <class V>
HWY_INLINE Pair<V> PlusSmaller(Pair<V> a, Pair<V> b) {
  const Pair<V> sum = ExactSumOfOrdered(a.high, b.high);
  return ExactSumOfOrdered(sum.high, sum.low + (a.low + b.low));
}

template <class V>
HWY_INLINE Pair<V> Times(Pair<V> a, Pair<V> b) {
  const Pair<V> product = ExactProduct(a.high, b.high);
  return ExactSumOfOrdered(product.high, Fma(a.high, b.low, Fma(a.low, b.high, product.low)));
}

// For products that are exact, or whose rounding does not matter.
template <class V>
HWY_INLINE Pair<V> Scaled(Pair<V> x, V factor) {
  return {x.high * factor, x.low * factor};
}

template <class V>
HWY_INLINE Pair<V> Quotient(Pair<V> a, Pair<V> b) {
  const V quotient = a.high / b.high;
  const V minus = Lanes<V>::Of(-0.0) - quotient;
  // The remainder of a.
  const V rest = Fma(minus, b.low, Fma(minus, b.high, a.high) + a.low);
  return ExactSumOfOrdered(quotient, rest / b.high);
}

// The coefficients of a power series. The first ones are pairs of doubles; those of terms smaller than 1/300 of the sum
// are rounded to double.
template <size_t kPairs, size_t kDoubles>
struct Series {
  PairConstant pairs[kPairs];
  double doubles[kDoubles];
};

// The value of the series at x, for |x| < 0.7.
template <class V, size_t kPairs, size_t kDoubles>
HWY_INLINE Pair<V> SumOf(const Series<kPairs, kDoubles>& series, Pair<V> x) {
  V rest = Lanes<V>::Of(series.doubles[kDoubles - 1]);
  for (size_t i = kDoubles - 1; i-- > 0;) rest = Fma(rest, x.high, Lanes<V>::Of(series.doubles[i]));
  Pair<V> sum = PlusSmaller(series.pairs[kPairs - 1].template As<V>(), ExactProduct(rest, x.high));
  for (size_t i = kPairs - 1; i-- > 0;) sum = PlusSmaller(series.pairs[i].template As<V>(), Times(sum, x));
  return sum;
}

// 1/1!, 1/2!, ...: e^r = 1 + r (1/1! + r/2! + ...), for |r| <= ln 2 / 2.
constexpr Series<9, 10> kExpSeries = {
    {{1, 0},
     {0x1p-1, 0},
     {0x1.5555555555555p-3, 0x1.5555555555555p-57},
     {0x1.5555555555555p-5, 0x1.5555555555555p-59},
     {0x1.1111111111111p-7, 0x1.1111111111111p-63},
     {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
     {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
     {0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76},
     {0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73}},
    {0x1.27e4fb7789f5cp-22, 0x1.ae64567f544e4p-26, 0x1.1eed8eff8d898p-29, 0x1.6124613a86d09p-33, 0x1.93974a8c07c9dp-37,
     0x1.ae7f3e733b81fp-41, 0x1.ae7f3e733b81fp-45, 0x1.952c77030ad4ap-49, 0x1.6827863b97d97p-53,
     0x1.2f49b46814157p-57}};
// 1, 1/3, 1/5, ...: ln((1 + s) / (1 - s)) = 2 s (1 + s^2/3 + s^4/5 + ...), for |s| < 0.172. kLogSeries is accurate to
// double precision, and kFineLogSeries to 2^-75, for logarithms that are multiplied by up to 1000 and become exponents.
constexpr Series<2, 11> kLogSeries = {
    {{1, 0}, {0x1.5555555555555p-2, 0x1.5555555555555p-56}},
    {1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25}};
constexpr Series<4, 11> kFineLogSeries = {
    {{1, 0},
     {0x1.5555555555555p-2, 0x1.5555555555555p-56},
     {0x1.999999999999ap-3, -0x1.999999999999ap-57},
     {0x1.2492492492492p-3, 0x1.2492492492492p-57}},
    {1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29}};
// 1, -1/3!, 1/5!, ...: sin r = r (1 - r^2/3! + ...), for |r| <= pi/4.
constexpr Series<2, 8> kSinSeries = {
    {{1, 0}, {-0x1.5555555555555p-3, -0x1.5555555555555p-57}},
    {0x1.1111111111111p-7, -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19, -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33,
     -0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49, -0x1.2f49b46814157p-57}};
// 1, -1/2!, 1/4!, ...: cos r = 1 - r^2/2! + ..., for |r| <= pi/4.
constexpr Series<3, 7> kCosSeries = {
    {{1, 0}, {-0x1p-1, 0}, {0x1.5555555555555p-5, 0x1.5555555555555p-59}},
    {-0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22, 0x1.1eed8eff8d898p-29,
     -0x1.93974a8c07c9dp-37, 0x1.ae7f3e733b81fp-45, -0x1.6827863b97d97p-53}};

// kLn2 has 106 bits, kHalfPi 160.
constexpr PairConstant kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
constexpr double kTwoByPi = 0x1.45f306dc9c883p-1;

// The bits of sqrt(1/2), the lower end of the range of mantissas.
constexpr int64_t kSqrtHalfBits = 0x3FE6A09E667F3BCD;

// ln m, for m in [sqrt(1/2), sqrt(2)).
template <class V, class LogSeries>
HWY_INLINE Pair<V> LogOfMantissa(const LogSeries& series, Pair<V> m) {
  const V one = Lanes<V>::Of(1);
  const Pair<V> above = ExactSum(m.high - one, m.low);
  Pair<V> below = ExactSum(m.high, one);
  below = ExactSum(below.high, below.low + m.low);
  const Pair<V> s = Quotient(above, below);
  return Times(Scaled(s, Lanes<V>::Of(2)), SumOf(series, Times(s, s)));
}

// Returns ln(2^k m), given k and ln m.
template <class V>
HWY_INLINE Pair<V> LogOfScaled(V k, Pair<V> log_m) {
  return Plus(Times({k, Lanes<V>::Of(0)}, kLn2.As<V>()), log_m);
}

// x - k pi/2, for the whole number k nearest to 2 x / pi. |x| <= 2^20.
template <class V>
HWY_INLINE Pair<V> WithoutQuarters(V x, V k) {
  const V minus = Lanes<V>::Of(-0.0) - k;
  Pair<V> r = Plus({x, Lanes<V>::Of(0)}, ExactProduct(minus, Lanes<V>::Of(kHalfPi[0])));
  r = Plus(r, ExactProduct(minus, Lanes<V>::Of(kHalfPi[1])));
  return Plus(r, ExactProduct(minus, Lanes<V>::Of(kHalfPi[2])));
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_ELEMENTARY_INL_H_

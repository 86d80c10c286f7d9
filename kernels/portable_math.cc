#include "lockstep/kernels/portable_math.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "lockstep/kernels/vectors/targets.h"
// Must come before the other Highway headers.
#include "lockstep/kernels/vectors/elementary-inl.h"

// Compiled only for the target that all other code is compiled for.
HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using DoublePair = Pair<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kOneByLn2 = 0x1.71547652b82fep+0;

uint64_t BitsOf(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// 2^k for k in [-1022, 1023].
double PowerOfTwo(int64_t k) {
  const uint64_t bits = static_cast<uint64_t>(k + 1023) << 52;
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// x 2^k for x in [0.7, 1.5], rounded once. |k| < 1080.
double Scale(DoublePair x, int64_t k) {
  if (k > -1022 || (k == -1022 && x.high >= 1)) {
    return k < 1023 ? x.high * PowerOfTwo(k) : x.high * PowerOfTwo(k - 2) * 4;
  }
  // The result is subnormal. Its last place is 2^-52 of the smallest normal number, just as the last place of 1 is
  // 2^-52.
  const DoublePair part = Scaled(x, PowerOfTwo(k + 1022));
  const DoublePair sum = ExactSumOfOrdered(1.0, part.high);
  return (sum.high + (sum.low + part.low) - 1) * PowerOfTwo(-1022);
}

// e^x = 2^k (1 + rest), |rest| < 0.42.
struct Power {
  int64_t k;
  DoublePair rest;
};

// |x| < 800.
Power PowerOf(DoublePair x) {
  const double k = std::floor(std::fma(x.high, kOneByLn2, 0.5));
  DoublePair r = Plus(x, ExactProduct(-k, kLn2.high));
  r = Plus(r, ExactProduct(-k, kLn2.low));
  return {static_cast<int64_t>(k), Times(r, SumOf(kExpSeries, r))};
}

double ExpOfPair(DoublePair x) {
  // The logarithms of the largest double and of half the smallest one, rounded away from 0.
  if (x.high > 709.79) return kInfinity;
  if (x.high < -745.14) return 0;
  const Power power = PowerOf(x);
  return Scale(PlusSmaller({1, 0}, power.rest), power.k);
}

// ln x, for x.high normal and positive.
template <typename LogSeries>
DoublePair LogOfPair(const LogSeries& series, DoublePair x) {
  const int64_t k = (static_cast<int64_t>(BitsOf(x.high)) - kSqrtHalfBits) >> 52;
  // Scales by two factors, because 2^-k itself may be subnormal.
  const DoublePair m = Scaled(Scaled(x, PowerOfTwo(-(k / 2))), PowerOfTwo(-(k - k / 2)));
  return LogOfScaled(static_cast<double>(k), LogOfMantissa(series, m));
}

// ln x, for finite x > 0.
template <typename LogSeries>
DoublePair LogOfPositive(const LogSeries& series, double x) {
  if (x >= std::numeric_limits<double>::min()) return LogOfPair(series, {x, 0});
  return LogOfScaled(-54.0, LogOfPair(series, {x * 0x1p54, 0}));
}

// sin(x + quarters pi/2)
double SinOf(double x, int64_t quarters) {
  constexpr double kLargestAngle = 0x1p20;
  if (!(std::abs(x) <= kLargestAngle)) return kNan;
  const double k = std::floor(std::fma(x, kTwoByPi, 0.5));
  const DoublePair r = WithoutQuarters(x, k);
  const DoublePair square = Times(r, r);
  const int64_t quarter = (static_cast<int64_t>(k) + quarters) & 3;
  const double result = quarter % 2 == 0 ? Times(r, SumOf(kSinSeries, square)).high : SumOf(kCosSeries, square).high;
  return quarter < 2 ? result : -result;
}

double ExpOfDouble(double x) { return std::isnan(x) ? x : ExpOfPair({x, 0}); }

double Expm1OfDouble(double x) {
  if (!(std::abs(x) >= 0x1p-54)) return x;  // NaN, too.
  if (x > 60) return ExpOfDouble(x);
  if (x < -60) return -1;
  const Power power = PowerOf({x, 0});
  if (power.k == 0) return power.rest.high;
  return Plus(Scaled(PlusSmaller({1, 0}, power.rest), PowerOfTwo(power.k)), {-1, 0}).high;
}

// (e^2|x| - 1) / (e^2|x| + 1), with the sign of x.
double TanhOfDouble(double x) {
  const double size = std::abs(x);
  if (!(size >= 0x1p-28)) return x;  // NaN, too.
  if (size > 20) return std::copysign(1.0, x);
  const Power power = PowerOf({2 * size, 0});
  DoublePair e = power.rest;
  if (power.k != 0) e = Plus(Scaled(PlusSmaller({1, 0}, power.rest), PowerOfTwo(power.k)), {-1, 0});
  return std::copysign(Quotient(e, Plus(e, {2, 0})).high, x);
}

double LogOfDouble(double x) {
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return kNan;
  return x == kInfinity ? x : LogOfPositive(kLogSeries, x).high;
}

double Log1pOfDouble(double x) {
  if (!(std::abs(x) >= 0x1p-54)) return x;  // NaN, too.
  if (x == -1) return -kInfinity;
  if (x < -1) return kNan;
  return x == kInfinity ? x : LogOfPair(kLogSeries, ExactSum(1.0, x)).high;
}

bool IsWhole(double x) { return std::floor(x) == x; }
// x must be a whole number. From 2^53 on, all doubles are even.
bool IsOdd(double x) { return std::abs(x) < 0x1p53 && (static_cast<int64_t>(x) & 1) != 0; }

// Returns x^y where x or y is 0, infinite or NaN, or x is 1.
double PowOfSpecial(double x, double y) {
  if (x == 1 || y == 0) return 1;
  if (std::isnan(x) || std::isnan(y)) return kNan;
  const double size = std::abs(x);
  if (std::isinf(y)) return size == 1 ? 1 : (size > 1) == (y > 0) ? kInfinity : 0;
  const double result = (size == 0) == (y > 0) ? 0 : kInfinity;
  return std::signbit(x) && IsWhole(y) && IsOdd(y) ? -result : result;
}

double PowOfDoubles(double x, double y) {
  const bool ordinary = std::isfinite(x) && std::isfinite(y) && x != 0 && y != 0 && x != 1;
  if (!ordinary) return PowOfSpecial(x, y);
  double sign = 1;
  if (x < 0) {
    if (!IsWhole(y)) return kNan;
    if (IsOdd(y)) sign = -1;
  }
  const DoublePair log = LogOfPositive(kFineLogSeries, std::abs(x));
  // Far outside the range of e^x, the product below could overflow.
  const double size = log.high * y;
  if (std::abs(size) > 1000) return size > 0 ? sign * kInfinity : sign * 0;
  return sign * ExpOfPair(Times(log, {y, 0}));
}

}  // namespace
}  // namespace HWY_NAMESPACE

namespace portable {

double Exp(double x) { return HWY_NAMESPACE::ExpOfDouble(x); }
double Expm1(double x) { return HWY_NAMESPACE::Expm1OfDouble(x); }
double Log(double x) { return HWY_NAMESPACE::LogOfDouble(x); }
double Log1p(double x) { return HWY_NAMESPACE::Log1pOfDouble(x); }
double Sin(double x) { return std::abs(x) < 0x1p-28 ? x : HWY_NAMESPACE::SinOf(x, 0); }
double Cos(double x) { return HWY_NAMESPACE::SinOf(x, 1); }
double Tanh(double x) { return HWY_NAMESPACE::TanhOfDouble(x); }
double Pow(double x, double y) { return HWY_NAMESPACE::PowOfDoubles(x, y); }

}  // namespace portable
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

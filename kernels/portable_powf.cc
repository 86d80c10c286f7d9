// x^y in single precision: 2^(y log2 x), computed in double precision and rounded once, at the end.
//   log2 x = exponent + 2 / ln 2 (s + s^3 / 3 + s^5 / 5 + ...),  s = (m - 1) / (m + 1),  x = m 2^exponent
//   2^r = 1 + r ln 2 + (r ln 2)^2 / 2! + ...,  |r| <= 1/2
// With m in [sqrt(1/2), sqrt(2)), s is at most 0.172, and both series end where their terms are below 2^-56.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lockstep/kernels/portable_math.h"

namespace lockstep {
namespace portable {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kTwoByLn2 = 0x1.71547652b82fep+1;
// The result is a normal float for exponents up to this size.
constexpr double kLargestExponent = 126;
constexpr int kLogTerms = 11;
constexpr int kExpTerms = 14;

struct ExpSeries {
  constexpr ExpSeries() {
    double factorial = 1;
    for (int k = 0; k < kExpTerms; factorial *= ++k) terms[k] = 1 / factorial;
  }
  double terms[kExpTerms] = {};
};
constexpr ExpSeries kExpSeries;

template <typename To, typename From>
To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// x must be positive and in the range of float, so that it is a normal double.
double Log2(double x) {
  // The exponent of x / sqrt(1/2), and the remaining mantissa.
  constexpr uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  const auto above = static_cast<int64_t>(BitCast<uint64_t>(x) - kRootOfHalf) >> 52;
  const auto m = BitCast<double>(BitCast<uint64_t>(x) - (static_cast<uint64_t>(above) << 52));
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 1.0 / (2 * kLogTerms - 1);
  for (int k = kLogTerms - 2; k >= 0; --k) sum = std::fma(sum, square, 1.0 / (2 * k + 1));
  return std::fma(kTwoByLn2 * s, sum, static_cast<double>(above));
}

// |x| <= kLargestExponent.
double Exp2(double x) {
  const double whole = std::nearbyint(x);
  const double r = (x - whole) * kLn2;
  double sum = kExpSeries.terms[kExpTerms - 1];
  for (int k = kExpTerms - 2; k >= 0; --k) sum = std::fma(sum, r, kExpSeries.terms[k]);
  return BitCast<double>(BitCast<uint64_t>(sum) + (static_cast<uint64_t>(static_cast<int64_t>(whole)) << 52));
}

}  // namespace

float Pow(float x, float y) {
  if (x > 0 && std::isfinite(x) && std::isfinite(y)) {
    const double exponent = static_cast<double>(y) * Log2(static_cast<double>(x));
    if (std::abs(exponent) <= kLargestExponent) return static_cast<float>(Exp2(exponent));
  }
  return static_cast<float>(Pow(static_cast<double>(x), static_cast<double>(y)));
}

}  // namespace portable
}  // namespace lockstep

#include "lockstep/kernels/portable_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

// 113 bits, for references of the C library. Its header declares them for GCC only.
#ifdef __clang__
using Quad = __float128;
extern "C" {
Quad cosf128(Quad) noexcept;
Quad expf128(Quad) noexcept;
Quad expm1f128(Quad) noexcept;
Quad log1pf128(Quad) noexcept;
Quad logf128(Quad) noexcept;
Quad powf128(Quad, Quad) noexcept;
Quad scalbnf128(Quad, int) noexcept;
Quad sinf128(Quad) noexcept;
Quad tanhf128(Quad) noexcept;
}
#else
using Quad = _Float128;
#endif

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kLargest = std::numeric_limits<double>::max();

// Pseudorandom numbers in [0, 1).
class Fractions {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_ = 1;
};

constexpr int kPoints = 10000;

std::vector<double> Evenly(double from, double to) {
  Fractions fractions;
  std::vector<double> x(kPoints);
  for (double& v : x) v = from + fractions.Next() * (to - from);
  return x;
}

// Returns values that are spread evenly over the powers of two from |from| to |to|, with the sign of `to`.
std::vector<double> ByMagnitude(double from, double to) {
  std::vector<double> x = Evenly(std::log2(std::abs(from)), std::log2(std::abs(to)));
  for (double& v : x) v = std::copysign(std::exp2(v), to);
  return x;
}

// The bound in portable_math.h.
constexpr double kBound = 0.51;

// Expects every result of f to be within kBound units in the last place of the exact one.
void ExpectExact(double (*f)(double), Quad (*exact)(Quad), const std::vector<double>& points) {
  double largest = 0, where = 0;
  for (const double x : points) {
    const Quad result = exact(static_cast<Quad>(x));
    const auto rounded = static_cast<double>(result);
    if (std::isinf(rounded)) {
      EXPECT_EQ(f(x), rounded) << x;
      continue;
    }
    const int exponent = rounded == 0 ? -1022 : std::max(std::ilogb(rounded), -1022);
    const double error =
        std::abs(static_cast<double>((static_cast<Quad>(f(x)) - result) / scalbnf128(1, exponent - 52)));
    if (!(error <= largest)) {
      largest = error;
      where = x;
    }
  }
  EXPECT_LT(largest, kBound) << "at " << where;
}

TEST(PortableMathTest, ExponentialsAreWithinTheBound) {
  for (const auto& points :
       {Evenly(-1, 1), Evenly(-746, 710), Evenly(-745.2, -708), ByMagnitude(1e-300, 1), ByMagnitude(1e-20, -1)}) {
    ExpectExact(portable::Exp, expf128, points);
  }
  for (const auto& points : {Evenly(-1, 1), Evenly(-70, 710), ByMagnitude(kSmallest, 1), ByMagnitude(kSmallest, -1)}) {
    ExpectExact(portable::Expm1, expm1f128, points);
  }
}

TEST(PortableMathTest, LogarithmsAreWithinTheBound) {
  for (const auto& points :
       {Evenly(0.5, 2), Evenly(1 - 1e-9, 1 + 1e-9), ByMagnitude(kSmallest, kLargest), ByMagnitude(kSmallest, 1e-307)}) {
    ExpectExact(portable::Log, logf128, points);
  }
  for (const auto& points : {Evenly(-0.9999, 1), ByMagnitude(kSmallest, kLargest), ByMagnitude(kSmallest, -0.9999),
                             ByMagnitude(1e-17, 0.01)}) {
    ExpectExact(portable::Log1p, log1pf128, points);
  }
}

TEST(PortableMathTest, SinesAreWithinTheBound) {
  std::vector<double> quarters;  // Where they are nearly 0 or 1.
  for (int i = 1; i < kPoints; ++i) {
    const double x = i * (i % 2 == 0 ? 1 : 22) * M_PI_2;
    for (const double near : {x, std::nextafter(x, 0.0), -std::nextafter(x, kInfinity)}) quarters.push_back(near);
  }
  for (const auto& points : {Evenly(-7, 7), Evenly(-0x1p20, 0x1p20), ByMagnitude(1e-300, 1), quarters}) {
    ExpectExact(portable::Sin, sinf128, points);
    ExpectExact(portable::Cos, cosf128, points);
  }
}

TEST(PortableMathTest, HyperbolicTangentsAreWithinTheBound) {
  for (const auto& points : {Evenly(-1, 1), Evenly(-25, 25), Evenly(18, 21), ByMagnitude(kSmallest, 1),
                             ByMagnitude(1e-9, -1e-7), ByMagnitude(0.1, -kLargest)}) {
    ExpectExact(portable::Tanh, tanhf128, points);
  }
}

double g_power = 0;

TEST(PortableMathTest, PowersAreWithinTheBound) {
  for (const double power : {0.5, -0.3, 2.0, -3.0, 1e-3, 100.0, -17.5, 1000.3, 1e-300, 1e300}) {
    g_power = power;
    for (const auto& points : {Evenly(0.5, 2), ByMagnitude(kSmallest, kLargest)}) {
      ExpectExact([](double x) { return portable::Pow(x, g_power); },
                  [](Quad x) { return powf128(x, static_cast<Quad>(g_power)); }, points);
    }
  }
  for (const double base : {0.96, 0.5, 2.0, 1.0000001, 5e-324, 1e300}) {
    g_power = base;
    ExpectExact([](double y) { return portable::Pow(g_power, y); },
                [](Quad y) { return powf128(static_cast<Quad>(g_power), y); }, Evenly(-1100, 1100));
  }
}

// Expects equal numbers of the same sign, or two NaNs of any kind.
template <typename Number>
void ExpectSame(Number actual, Number expected, Number x, Number y = 0) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << x << ", " << y << ": " << actual;
  } else {
    EXPECT_TRUE(std::memcmp(&actual, &expected, sizeof(actual)) == 0)
        << x << ", " << y << ": " << actual << " and not " << expected;
  }
}

TEST(PortableMathTest, TheEndsOfTheRangeFollowC) {
  for (const double x : {0.0, -0.0, kInfinity, -kInfinity, kNan, kSmallest, -kSmallest, 710.0, -746.0, -1.0, -2.0}) {
    SCOPED_TRACE(x);
    ExpectSame(portable::Exp(x), std::exp(x), x);
    ExpectSame(portable::Expm1(x), std::expm1(x), x);
    ExpectSame(portable::Log(x), std::log(x), x);
    ExpectSame(portable::Log1p(x), std::log1p(x), x);
    ExpectSame(portable::Sin(x), std::sin(x), x);
    ExpectSame(portable::Cos(x), std::cos(x), x);
    // The C library's tanh may be off by two units in the last place.
    ExpectSame(portable::Tanh(x), static_cast<double>(tanhf128(static_cast<Quad>(x))), x);
  }
  EXPECT_EQ(portable::Log(1), 0);
  EXPECT_EQ(portable::Exp(709.78271289338397), std::exp(709.78271289338397));
}

TEST(PortableMathTest, AnglesBeyondTheRangeAreNaN) {
  for (const double x : {0x1.00001p20, -1e9, kLargest}) {
    EXPECT_TRUE(std::isnan(portable::Sin(x)));
    EXPECT_TRUE(std::isnan(portable::Cos(x)));
  }
}

// Expects zeros, infinities and NaN to match bit for bit, and other numbers to match approximately.
template <typename Number>
void ExpectSpecialPowers(const std::vector<Number>& numbers) {
  for (const Number x : numbers) {
    for (const Number y : numbers) {
      const Number expected = std::pow(x, y);
      if (expected == 0 || !std::isfinite(expected)) {
        ExpectSame(portable::Pow(x, y), expected, x, y);
      } else {
        const Number tolerance = 2 * std::numeric_limits<Number>::epsilon() * std::abs(expected);
        EXPECT_NEAR(portable::Pow(x, y), expected, tolerance) << x << ", " << y;
      }
    }
  }
}

TEST(PortableMathTest, SpecialPowersFollowC) {
  ExpectSpecialPowers<double>({0.0, -0.0, 1.0, -1.0, kInfinity, -kInfinity, kNan, 2.0, -3.0, 0.5, -1.5, kSmallest,
                               -kSmallest, kLargest, -kLargest, 0x1p53 + 2, -0x1.fffffffffffffp52});
  ExpectSpecialPowers<float>({0.0f, -0.0f, 1.0f, -1.0f, static_cast<float>(kInfinity), static_cast<float>(-kInfinity),
                              static_cast<float>(kNan), 2.0f, -3.0f, 0.5f, -1.5f, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f,
                              0x1p24f + 2, -0x1.fffffep23f});
}

TEST(PortableMathTest, PowersOfFloatsAreWithinTheirBound) {
  Fractions fractions;
  double largest = 0;
  for (int i = 0; i < 30 * kPoints; ++i) {
    const auto x = static_cast<float>(std::exp2(-149 + 276 * fractions.Next()));
    const auto y = static_cast<float>((i % 2 == 0 ? 1.0 : 100.0) * (2 * fractions.Next() - 1));
    const double exact = portable::Pow(double{x}, double{y});
    if (exact > std::numeric_limits<float>::max()) continue;
    const int exponent = std::max(std::ilogb(exact), -126);
    largest = std::max(largest, std::abs(portable::Pow(x, y) - exact) / std::ldexp(1.0, exponent - 23));
  }
  EXPECT_LT(largest, 0.50001);
  EXPECT_GT(largest, 0.49);
}

}  // namespace
}  // namespace lockstep

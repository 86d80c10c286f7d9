#include "lockstep/kernels/math.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Function = void (*)(int64_t, const float*, float*);

std::vector<float> Apply(Function f, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  f(static_cast<int64_t>(x.size()), x.data(), y.data());
  return y;
}
float Apply(Function f, float x) { return Apply(f, std::vector<float>{x})[0]; }

// Returns every 4099th float, of either sign.
std::vector<float> Everywhere() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof(value));
    if (std::isfinite(value)) x.push_back(value);
  }
  return x;
}

// Returns the largest error of f, in units of the exact result's last place, over all results that are normal numbers.
// Tries every 4099th float that is at least `lowest`, and `worst`.
double LargestError(Function f, double (*exact)(double), float lowest, float worst) {
  std::vector<float> x = Everywhere();
  x.erase(std::remove_if(x.begin(), x.end(), [&](float v) { return v < lowest; }), x.end());
  x.push_back(worst);
  const std::vector<float> y = Apply(f, x);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double result = exact(static_cast<double>(x[i]));
    const double size = std::abs(result);
    if (!(size >= std::numeric_limits<float>::min() && size <= std::numeric_limits<float>::max())) continue;
    largest = std::max(largest, std::abs(y[i] - result) / std::ldexp(1.0, std::ilogb(result) - 23));
  }
  return largest;
}

// Checks the bounds in math.h. `worst` is the float with the largest error.
TEST(MathTest, TheErrorIsWithinItsBoundAndReachesIt) {
  const auto expect = [](double bound, Function f, double (*exact)(double), float lowest, float worst) {
    const double largest = LargestError(f, exact, lowest, worst);
    EXPECT_LT(largest, bound);
    EXPECT_GT(largest, bound - 0.1);
  };
  ForEachTarget([&] {
    expect(1.3, ExpOf, std::exp, -kInfinity, 15.6281481f);
    expect(0.9, LogOf, std::log, std::numeric_limits<float>::min(), 0.700769007f);
    expect(4.9, TanhOf, std::tanh, -kInfinity, 5.12603903f);
    expect(
        3.2, SigmoidOf, [](double x) { return 1 / (1 + std::exp(-x)); }, -87, -16.6396866f);
  });
}

TEST(MathTest, AgreesWithEigen) {
  const std::vector<float> x = {-20, -3, -0.5f, -1e-5f, 0, 1e-3f, 0.7f, 1, 2.5f, 40};
  const Eigen::Map<const Eigen::ArrayXf> points(x.data(), static_cast<Eigen::Index>(x.size()));
  const auto near = [&](Function f, const Eigen::ArrayXf& expected) {
    const std::vector<float> y = Apply(f, x);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6 * std::abs(expected[i])) << x[i];
  };
  ForEachTarget([&] {
    near(ExpOf, points.exp());
    near(TanhOf, points.tanh());
    near(SigmoidOf, 1 / (1 + (-points).exp()));
  });
}

TEST(MathTest, EveryTargetHasTheSameBits) {
  std::vector<float> x = Everywhere();
  x.push_back(kInfinity);
  x.push_back(-kInfinity);
  for (const Function f : {ExpOf, LogOf, TanhOf, SigmoidOf}) {
    ExpectSameBitsOnEachTarget([&] {
      std::vector<float> y = Apply(f, x);
      for (float& v : y) {
        if (std::isnan(v)) v = 0;
      }
      return y;
    });
  }
}

TEST(MathTest, TheEndsOfTheRange) {
  ForEachTarget([] {
    EXPECT_EQ(Apply(ExpOf, kInfinity), kInfinity);
    EXPECT_LT(Apply(ExpOf, -kInfinity), 3e-39f);
    EXPECT_EQ(Apply(ExpOf, 0.0f), 1);
    EXPECT_EQ(Apply(LogOf, 0.0f), -kInfinity);
    EXPECT_EQ(Apply(LogOf, kInfinity), kInfinity);
    EXPECT_TRUE(std::isnan(Apply(LogOf, -1.0f)));
    EXPECT_EQ(Apply(LogOf, 1.0f), 0);
    EXPECT_NEAR(Apply(TanhOf, kInfinity), 1, 1e-6);
    EXPECT_EQ(Apply(SigmoidOf, kInfinity), 1);
    for (const Function f : {ExpOf, LogOf, TanhOf, SigmoidOf}) EXPECT_TRUE(std::isnan(Apply(f, std::nanf(""))));
  });
}

TEST(MathTest, ResultsDoNotDependOnPosition) {
  std::vector<float> x;
  for (int i = 1; i <= 37; ++i) x.push_back(0.1f * static_cast<float>(i));
  for (const Function f : {ExpOf, LogOf, TanhOf, SigmoidOf}) {
    ForEachTarget([&] {
      const std::vector<float> y = Apply(f, x);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(Apply(f, x[i]), y[i]) << x[i];
    });
  }
}

TEST(MathTest, TargetsAgreeOnRandomShapes) {
  const Function all[] = {ExpOf, LogOf, TanhOf, SigmoidOf};
  ForEachRandomCase(1000, [&](RandomCase& c) {
    const Function f = c.OneOf(all);
    const int64_t size = c.Size(0, 300);
    const std::vector<float> x = c.Numbers(size);
    const bool in_place = c.OneIn(2);
    float* const y = in_place ? c.InOut(x) : c.Output(size);
    f(size, in_place ? y : c.Input(x), y);
    for (int64_t i = 0; i < size; ++i) ASSERT_PRED2(SameFloats, y[i], Apply(f, x[i])) << i;
  });
}

}  // namespace
}  // namespace lockstep

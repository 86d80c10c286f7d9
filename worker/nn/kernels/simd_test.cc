#include "lockstep/worker/nn/kernels/simd.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/common/kernels/testing/float_arrays.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Lanes(F32x8 x) {
  std::vector<float> lanes(kLanes);
  Store8(lanes.data(), x);
  return lanes;
}

TEST(SimdTest, PartLoadsFillTheOtherLanes) {
  const float x[] = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(Lanes(LoadPart8(x, 0, -1)), Each(-1));
  EXPECT_THAT(Lanes(LoadPart8(x, 1)), ElementsAre(1, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Lanes(LoadPart8(x, 4, 9)), ElementsAre(1, 2, 3, 4, 9, 9, 9, 9));
  EXPECT_THAT(Lanes(LoadPart8(x, 7, 9)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 9));
}

TEST(SimdTest, PartStoresWriteNothingElse) {
  const F32x8 x = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int count = 0; count < kLanes; ++count) {
    ResultArray stored(count);
    StorePart8(stored.data(), count, x);
    EXPECT_TRUE(stored.borders_intact()) << count;
    for (int i = 0; i < count; ++i) EXPECT_EQ(stored.values()[i], i + 1);
  }
}

TEST(SimdTest, AProductAndASumAreRoundedOnce) {
  const float a = 1 + std::ldexp(1.0f, -12);
  const F32x8 result = MultiplyAdd8(Set8(a), Set8(a), Set8(-1));
  // a * a rounds to 1 + 2^-11: its last bit survives only without a rounding in between.
  EXPECT_THAT(Lanes(result), Each(std::ldexp(1.0f, -11) + std::ldexp(1.0f, -24)));
}

TEST(SimdTest, TheLargerOfTwoIsTheNotANumberOnTheRight) {
  const F32x8 x = {-2, -0.5f, 0, 0.5f, 3, kNan, kInfinity, -kInfinity};
  const std::vector<float> larger = Lanes(Max8(Set8(-1), x));
  EXPECT_TRUE(std::isnan(larger[5]));
  EXPECT_THAT(absl::MakeSpan(larger).subspan(0, 5), ElementsAre(-1, -0.5f, 0, 0.5f, 3));
  EXPECT_EQ(larger[6], kInfinity);
  EXPECT_EQ(larger[7], -1);
}

TEST(SimdTest, LanesAreSummedInTheDocumentedOrder) {
  for (int stream = 0; stream < 50; ++stream) {
    const std::vector<float> x = RandomFloats(kLanes, stream);
    const float expected = ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
    EXPECT_EQ(Sum8(Load8(x.data())), expected);
  }
}

TEST(SimdTest, EachLaneMayBeTheLargest) {
  for (int lane = 0; lane < kLanes; ++lane) {
    std::vector<float> x(kLanes, -3.0f);
    x[lane] = -2;
    EXPECT_EQ(Largest8(Load8(x.data())), -2) << lane;
  }
}

TEST(SimdTest, FunctionsAreThoseOfTheLibrary) {
  std::vector<float> x = RandomFloats(400, 1);
  for (float& v : x) v *= 6;
  const auto expect = [&](F32x8 (*f)(F32x8), double (*reference)(double), bool positive) {
    for (size_t i = 0; i < x.size(); i += kLanes) {
      std::vector<float> argument(x.begin() + i, x.begin() + i + kLanes);
      if (positive) {
        for (float& v : argument) v = std::abs(v);
      }
      std::vector<double> expected;
      for (const float v : argument) expected.push_back(reference(v));
      EXPECT_EQ(FirstDifference(Lanes(f(Load8(argument.data()))), expected, 1e-6), "") << argument[0];
    }
  };
  expect(Exp8, std::exp, false);
  expect(Log8, std::log, true);
  expect(Tanh8, std::tanh, false);
  expect(
      Sigmoid8, [](double v) { return 1 / (1 + std::exp(-v)); }, false);
}

TEST(SimdTest, FunctionsKeepANotANumberInItsLane) {
  F32x8 x = Set8(1);
  x[3] = kNan;
  for (F32x8 (*f)(F32x8) : {Exp8, Log8, Tanh8, Sigmoid8}) {
    const std::vector<float> y = Lanes(f(x));
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(std::isnan(y[i]), i == 3);
  }
}

TEST(SimdTest, TransformCoversArraysOfAnySize) {
  for (int64_t size = 0; size <= 40; ++size) {
    const std::vector<float> x = RandomFloats(size, 1);
    const std::vector<float> y = RandomFloats(size, 2);
    ResultArray doubled(size);
    Transform(size, x.data(), doubled.data(), [](F32x8 v) { return v + v; });
    ResultArray difference(size);
    Transform(size, x.data(), y.data(), difference.data(), [](F32x8 a, F32x8 b) { return a - b; });
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_EQ(doubled.values()[i], 2 * x[i]) << i << " of " << size;
      EXPECT_EQ(difference.values()[i], x[i] - y[i]) << i << " of " << size;
    }
    EXPECT_TRUE(doubled.borders_intact() && difference.borders_intact()) << size;
  }
}

TEST(SimdTest, TransformMayReplaceItsArguments) {
  const std::vector<float> x = RandomFloats(21, 1);
  const std::vector<float> y = RandomFloats(21, 2);
  const auto subtract = [](F32x8 a, F32x8 b) { return a - b; };
  std::vector<float> first = x;
  Transform(21, first.data(), y.data(), first.data(), subtract);
  std::vector<float> second = y;
  Transform(21, x.data(), second.data(), second.data(), subtract);
  for (int i = 0; i < 21; ++i) {
    EXPECT_EQ(first[i], x[i] - y[i]);
    EXPECT_EQ(second[i], x[i] - y[i]);
  }
}

}  // namespace
}  // namespace lockstep

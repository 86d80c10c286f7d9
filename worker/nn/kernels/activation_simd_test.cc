#include "lockstep/worker/nn/kernels/activation_simd.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/common/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/reference_activation.h"

namespace lockstep {
namespace {

constexpr float kSlope = 0.375f;

F32x8 Value(config::v1::Activation kind, F32x8 x) {
  F32x8 y = {};
  WithActivation({kind, kSlope}, [&](auto function) { y = function.Value(x); });
  return y;
}

F32x8 Gradient(config::v1::Activation kind, F32x8 x, F32x8 dy) {
  const F32x8 value = GradientNeedsInput({kind}) ? x : Value(kind, x);
  F32x8 dx = {};
  WithActivation({kind, kSlope}, [&](auto function) { dx = function.Gradient(value, dy); });
  return dx;
}

TEST(ActivationSimdTest, EveryLaneHasTheValueOfItsElement) {
  for (const config::v1::Activation kind : kAllActivations) {
    const std::vector<float> x = RandomFloats(8, 5);
    const F32x8 y = Value(kind, Load8(x.data()));
    for (int i = 0; i < kLanes; ++i) {
      EXPECT_NEAR(y[i], ReferenceActivation({kind, kSlope}, x[i]), 1e-6) << Activation_Name(kind) << " " << x[i];
    }
  }
}

TEST(ActivationSimdTest, EveryLaneHasTheSlopeOfItsElement) {
  for (const config::v1::Activation kind : kAllActivations) {
    const std::vector<float> x = RandomFloats(8, 5);
    const std::vector<float> dy = RandomFloats(8, 6);
    const F32x8 dx = Gradient(kind, Load8(x.data()), Load8(dy.data()));
    for (int i = 0; i < kLanes; ++i) {
      const double slope =
          (ReferenceActivation({kind, kSlope}, x[i] + 1e-5) - ReferenceActivation({kind, kSlope}, x[i] - 1e-5)) / 2e-5;
      EXPECT_NEAR(dx[i], dy[i] * slope, 3e-6) << Activation_Name(kind) << " " << x[i];
    }
  }
}

TEST(ActivationSimdTest, TheSlopeAtZeroIsThatBelowZero) {
  EXPECT_EQ(Gradient(config::v1::RELU, Set8(0), Set8(5))[0], 0);
  EXPECT_EQ(Gradient(config::v1::LEAKY_RELU, Set8(0), Set8(8))[0], 8 * kSlope);
}

TEST(ActivationSimdTest, ANotANumberStaysInItsLane) {
  F32x8 x = Set8(0.5f);
  x[6] = std::numeric_limits<float>::quiet_NaN();
  for (const config::v1::Activation kind : kAllActivations) {
    const F32x8 y = Value(kind, x);
    for (int i = 0; i < kLanes; ++i) EXPECT_EQ(std::isnan(y[i]), i == 6) << Activation_Name(kind);
  }
}

TEST(ActivationSimdTest, TheGradientOfGeluAloneNeedsTheInput) {
  for (const config::v1::Activation kind : kAllActivations) {
    EXPECT_EQ(GradientNeedsInput({kind}), kind == config::v1::GELU) << Activation_Name(kind);
  }
}

}  // namespace
}  // namespace lockstep

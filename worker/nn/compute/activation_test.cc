#include "lockstep/worker/nn/compute/activation.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "lockstep/worker/nn/testing/reference_activation.h"

namespace lockstep {
namespace {

std::vector<float> Points() {
  std::vector<float> points;
  for (int i = -61; i <= 61; ++i) points.push_back(0.17f * static_cast<float>(i) + 0.01f);
  for (const float x : {0.0f, -0.0f, 1e-30f, -1e-30f, 50.0f, -50.0f, 500.0f, -500.0f}) points.push_back(x);
  return points;
}

TEST(ActivationTest, HasTheValuesAndSlopesOfTheFunction) {
  const std::vector<float> x = Points();
  for (const config::v1::Activation kind : kAllActivations) {
    const ActivationFunction f{kind};
    std::vector<float> y(x.size());
    Activate(f, x.size(), x.data(), y.data());
    const std::vector<float> dy(x.size(), 2.0f);
    std::vector<float> dx(x.size());
    ActivationGradient(f, x.size(), GradientNeedsInput(f) ? x.data() : y.data(), dy.data(), dx.data());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(y[i], ReferenceActivation(f, x[i]), 1e-6 * (1 + std::abs(x[i])))
          << Activation_Name(kind) << " " << x[i];
      if (std::abs(x[i]) < 1e-3) continue;  // The kink.
      const double slope = (ReferenceActivation(f, x[i] + 1e-5) - ReferenceActivation(f, x[i] - 1e-5)) / 2e-5;
      EXPECT_NEAR(dx[i], 2 * slope, 2e-5) << Activation_Name(kind) << " " << x[i];
    }
  }
}

TEST(ActivationTest, AnElementsBitsDoNotDependOnItsPlace) {
  const std::vector<float> x = Points();
  for (const config::v1::Activation kind : kAllActivations) {
    const ActivationFunction f{kind};
    std::vector<float> whole(x.size());
    Activate(f, x.size(), x.data(), whole.data());
    for (size_t i = 0; i < x.size(); ++i) {
      float alone;
      Activate(f, 1, &x[i], &alone);
      EXPECT_EQ(alone, whole[i]) << Activation_Name(kind) << " " << x[i];
    }
  }
}

TEST(ActivationTest, ANotANumberStays) {
  for (const config::v1::Activation kind : kAllActivations) {
    float x[11];
    for (float& v : x) v = std::nanf("");
    Activate({kind}, 11, x, x);
    for (const float v : x) EXPECT_TRUE(std::isnan(v)) << Activation_Name(kind);
  }
}

TEST(ActivationTest, AddsTheBiasToItsColumnFirst) {
  // A tile of 2 x 3 in a matrix of 4 x 5.
  const Tile tile{1, 2, 2, 3};
  const std::vector<float> bias = {-9, 9, 0.5f, -0.25f, 1};
  for (const config::v1::Activation kind : kAllActivations) {
    std::vector<float> sum(20), y(20, 7.0f);
    for (int i = 0; i < 20; ++i) sum[i] = 0.1f * static_cast<float>(i) - 1;
    const std::vector<float> before = sum;
    AddBiasAndActivate({kind}, tile, 5, bias.data(), sum.data(), y.data());
    for (int i = 0; i < 20; ++i) {
      const bool inside = i / 5 >= 1 && i / 5 < 3 && i % 5 >= 2;
      const float biased = before[i] + bias[i % 5];
      float expected = 7.0f;
      if (inside) Activate({kind}, 1, &biased, &expected);
      EXPECT_EQ(sum[i], inside ? biased : before[i]) << i;
      EXPECT_EQ(y[i], expected) << Activation_Name(kind) << " " << i;
    }
    std::vector<float> in_place = before;
    AddBiasAndActivate({kind}, tile, 5, bias.data(), in_place.data(), in_place.data());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(in_place[i], y[i] == 7.0f ? before[i] : y[i]) << i;
  }
}

}  // namespace
}  // namespace lockstep

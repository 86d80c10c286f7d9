#include "lockstep/worker/nn/kernels/activation.h"

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

TEST(ActivationTest, AddsTheBiasFirst) {
  const std::vector<float> x = Points();
  const std::vector<float> bias(x.rbegin(), x.rend());
  std::vector<float> sum(x.size()), expected(x.size()), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) sum[i] = x[i] + bias[i];
  for (const config::v1::Activation kind : kAllActivations) {
    Activate({kind}, x.size(), sum.data(), expected.data());
    AddBiasAndActivate({kind}, x.size(), x.data(), bias.data(), y.data());
    EXPECT_EQ(y, expected) << Activation_Name(kind);
  }
}

}  // namespace
}  // namespace lockstep

#include "lockstep/worker/nn/layers/activation_layer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/layer_runner.h"
#include "lockstep/worker/nn/testing/reference_activation.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

std::string Config(config::v1::Activation kind, const std::string& slope = "") {
  return absl::StrCat("name: 'x' activation { kind: ", Activation_Name(kind), " ", slope, " }");
}

void ExpectActivation(const ActivationFunction& f, int64_t size) {
  const std::string slope = f.slope == kDefaultLeakySlope ? "" : absl::StrCat("slope: ", f.slope);
  LayerRunner runner(MakeActivationLayer, Config(f.kind, slope), {Shape{size}}, {3});
  const auto reference = [&](const std::vector<std::vector<double>>& arguments) {
    std::vector<double> y;
    for (const double x : arguments[0]) y.push_back(ReferenceActivation(f, x));
    return y;
  };
  EXPECT_EQ(CompareWithReference(&runner, {}, reference, 1e-5), "") << Activation_Name(f.kind) << " of " << size;
}

TEST(ActivationLayerTest, HasTheValuesAndSlopesOfItsFunction) {
  for (const config::v1::Activation kind : kAllActivations) {
    for (const int64_t size : {1, 5, 8, 13}) ExpectActivation({kind}, size);
  }
}

TEST(ActivationLayerTest, TheSlopeOfLeakyReluIsFree) {
  for (const float slope : {0.0f, 0.5f, 1.0f}) ExpectActivation({config::v1::LEAKY_RELU, slope}, 9);
}

TEST(ActivationLayerTest, SeveralBlocksBeyond16384Elements) {
  for (const config::v1::Activation kind : {config::v1::LEAKY_RELU, config::v1::GELU}) {
    LayerRunner runner(MakeActivationLayer, Config(kind), {Shape{9001}}, {4, 3});
    ASSERT_EQ(runner.Forward(), absl::OkStatus());
    const std::vector<float> ones(4 * 9001, 1.0f);
    runner.Backward(ones);
    for (int i = 0; i < 4 * 9001; ++i) {
      const double x = runner.input()[i];
      const double slope = (ReferenceActivation({kind}, x + 1e-6) - ReferenceActivation({kind}, x - 1e-6)) / 2e-6;
      ASSERT_NEAR(runner.output()[i], ReferenceActivation({kind}, x), 1e-5) << i;
      if (std::abs(x) < 1e-5) continue;  // The kink.
      ASSERT_NEAR(runner.input_gradient()[i], slope, 1e-5) << i;
    }
    EXPECT_EQ(runner.violations(), "");
  }
}

TEST(ActivationLayerTest, TheGradientMayReplaceTheOutputs) {
  for (const config::v1::Activation kind : kAllActivations) {
    LayerRunner runner(MakeActivationLayer, Config(kind), {Shape{11}}, {2});
    const std::vector<float> weights = RandomFloats(22, 5);
    ASSERT_EQ(runner.Forward(), absl::OkStatus());
    runner.Backward(weights);
    const std::vector<double> expected = ToDoubles(runner.input_gradient());
    runner.Backward(weights, LayerRunner::InputGradients::kInPlace);
    EXPECT_EQ(FirstDifference(runner.input_gradient(), expected, 0), "") << Activation_Name(kind);
    runner.Backward(weights, LayerRunner::InputGradients::kNone);
    for (const float x : runner.input_gradient()) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(ActivationLayerTest, ANotANumberStays) {
  for (const config::v1::Activation kind : kAllActivations) {
    LayerRunner runner(MakeActivationLayer, Config(kind), {Shape{11}}, {});
    runner.input()[9] = std::numeric_limits<float>::quiet_NaN();
    ASSERT_EQ(runner.Forward(), absl::OkStatus());
    for (int i = 0; i < 11; ++i) EXPECT_EQ(std::isnan(runner.output()[i]), i == 9) << Activation_Name(kind);
  }
}

TEST(ActivationLayerTest, TheIdentityIsAView) {
  for (const config::v1::Activation kind : kAllActivations) {
    const LayerRunner runner(MakeActivationLayer, Config(kind), {Shape{2, 3}}, {});
    EXPECT_EQ(runner.op().is_view(), kind == config::v1::NONE) << Activation_Name(kind);
    EXPECT_EQ(runner.op().output_shape(), (Shape{2, 3}));
  }
}

TEST(ActivationLayerTest, RefusesNumbersOutOfRange) {
  const auto message = [](const std::string& config) {
    return std::string(LayerStatus(MakeActivationLayer, config, {Shape{3}}).message());
  };
  EXPECT_THAT(message("name: 'x' activation { kind: 99 }"), HasSubstr("no activation 99"));
  EXPECT_THAT(message(Config(config::v1::RELU, "slope: 0.5")), HasSubstr("slope 0.5 belongs to LEAKY_RELU"));
  EXPECT_THAT(message(Config(config::v1::LEAKY_RELU, "slope: 1.5")), HasSubstr("slope is 1.5"));
  EXPECT_THAT(message(Config(config::v1::LEAKY_RELU, "slope: -0.5")), HasSubstr("slope is -0.5"));
  EXPECT_THAT(message(Config(config::v1::LEAKY_RELU, "slope: nan")), HasSubstr("slope is nan"));
}

}  // namespace
}  // namespace lockstep

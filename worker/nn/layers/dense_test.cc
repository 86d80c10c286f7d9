#include "lockstep/worker/nn/layers/dense.h"

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

struct Case {
  int64_t batch = 1;
  int64_t inputs = 1;
  int64_t units = 1;
  config::v1::Activation activation = config::v1::NONE;
  bool bias = true;

  std::string Config() const {
    return absl::StrCat("name: 'x' dense { units: ", units, " activation: ", Activation_Name(activation),
                        " no_bias: ", bias ? "false" : "true", " }");
  }
};

// Returns f(x W + b) for arguments x, W and, if the layer has one, b.
std::vector<double> Reference(const Case& c, const std::vector<std::vector<double>>& arguments) {
  std::vector<double> y(c.batch * c.units);
  for (int64_t i = 0; i < c.batch * c.units; ++i) {
    double sum = c.bias ? arguments[2][i % c.units] : 0;
    for (int64_t k = 0; k < c.inputs; ++k) {
      sum += arguments[0][i / c.units * c.inputs + k] * arguments[1][k * c.units + i % c.units];
    }
    y[i] = ReferenceActivation({c.activation}, sum);
  }
  return y;
}

void ExpectDense(const Case& c, int threads = 1) {
  LayerRunner runner(MakeDense, c.Config(), {Shape{c.inputs}}, {c.batch, threads});
  const std::vector<std::string> variables =
      c.bias ? std::vector<std::string>{"kernel", "bias"} : std::vector<std::string>{"kernel"};
  EXPECT_EQ(CompareWithReference(
                &runner, variables, [&](const auto& arguments) { return Reference(c, arguments); }, 2e-5),
            "")
      << c.Config() << " of " << c.batch << " x " << c.inputs;
}

TEST(DenseTest, MultipliesAddsTheBiasAndActivates) {
  for (const config::v1::Activation activation : kAllActivations) {
    ExpectDense({5, 7, 11, activation, true});
    ExpectDense({5, 7, 11, activation, false});
  }
}

TEST(DenseTest, SizesMayEndAnywhereInATile) {
  for (int64_t size = 1; size <= 18; ++size) {
    ExpectDense({2, 3, size, config::v1::TANH});
    ExpectDense({2, size, 3, config::v1::GELU});
    ExpectDense({size, 2, 3, config::v1::SIGMOID});
  }
}

TEST(DenseTest, ManyColumnsAndRowsAreSeveralTiles) {
  ExpectDense({2, 2, 270, config::v1::GELU}, 3);
  ExpectDense({2, 2, 270, config::v1::TANH}, 3);
  ExpectDense({200, 3, 2, config::v1::GELU}, 3);
  ExpectDense({2, 405, 1, config::v1::NONE});
}

TEST(DenseTest, AScalarIsAVectorOfOne) {
  LayerRunner runner(MakeDense, "name: 'x' dense { units: 2 }", {Shape{}}, {3});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(runner.output()[i],
                    runner.input()[i / 2] * runner.variable("kernel")[i % 2] + runner.variable("bias")[i % 2]);
  }
}

TEST(DenseTest, EvaluationGivesTheBitsOfTraining) {
  for (const config::v1::Activation activation : kAllActivations) {
    LayerRunner runner(MakeDense, Case{7, 9, 10, activation}.Config(), {Shape{9}}, {7});
    ASSERT_EQ(runner.Forward(true), absl::OkStatus());
    const std::vector<float> training(runner.output().begin(), runner.output().end());
    ASSERT_EQ(runner.Forward(false), absl::OkStatus());
    EXPECT_EQ(FirstDifference(runner.output(), ToDoubles(training), 0), "") << Activation_Name(activation);
  }
}

TEST(DenseTest, DoesNotComputeAnUnwantedGradient) {
  LayerRunner runner(MakeDense, "name: 'x' dense { units: 3 }", {Shape{4}}, {2});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward(RandomFloats(6, 1), LayerRunner::InputGradients::kNone);
  for (const float x : runner.input_gradient()) EXPECT_TRUE(std::isnan(x));
  for (const float x : runner.gradient("kernel")) EXPECT_FALSE(std::isnan(x));
  EXPECT_EQ(runner.violations(), "");
}

TEST(DenseTest, ANotANumberStaysInItsExample) {
  LayerRunner runner(MakeDense, "name: 'x' dense { units: 10 activation: RELU }", {Shape{4}}, {3});
  runner.input()[1 * 4 + 2] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(std::isnan(runner.output()[i]), i / 10 == 1) << i;
}

TEST(DenseTest, DeclaresItsVariables) {
  LayerRunner runner(MakeDense, "name: 'x' dense { units: 3 }", {Shape{4}}, {});
  ASSERT_EQ(runner.spec().variables_size(), 2);
  EXPECT_EQ(runner.spec().variables(0).name(), "x/kernel");
  EXPECT_EQ(runner.variable("kernel").size(), 12u);
  EXPECT_TRUE(runner.spec().variables(0).initializer().has_glorot());
  EXPECT_EQ(runner.spec().variables(1).name(), "x/bias");
  EXPECT_EQ(runner.variable("bias").size(), 3u);
  EXPECT_TRUE(runner.spec().variables(1).initializer().has_zeros());
  EXPECT_EQ(runner.op().output_shape(), Shape{3});
  EXPECT_EQ(runner.op().multiply_adds(), 12);
}

TEST(DenseTest, RefusesOtherInputsAndNumbers) {
  EXPECT_THAT(LayerStatus(MakeDense, "name: 'x' dense { units: 3 }", {Shape{4, 5}}).message(),
              HasSubstr("not shape [4,5]"));
  EXPECT_THAT(LayerStatus(MakeDense, "name: 'x' dense { units: 0 }", {Shape{4}}).message(), HasSubstr("units is 0"));
  EXPECT_THAT(LayerStatus(MakeDense, "name: 'x' dense { units: 3 activation: 99 }", {Shape{4}}).message(),
              HasSubstr("no activation 99"));
}

}  // namespace
}  // namespace lockstep

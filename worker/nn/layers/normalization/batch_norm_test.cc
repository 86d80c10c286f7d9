#include "lockstep/worker/nn/layers/normalization/batch_norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/testing/gradient_check.h"
#include "lockstep/worker/nn/testing/layer_runner.h"
#include "lockstep/worker/nn/testing/reference_activation.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

struct Case {
  int64_t batch = 1;
  Shape shape = {1};
  config::v1::Activation activation = config::v1::NONE;
  bool scale = true;
  bool center = true;
  float epsilon = 0.001f;

  int64_t channels() const { return shape.dim(shape.rank() - 1); }
  std::string Config() const {
    return absl::StrCat("name: 'x' batch_norm { activation: ", Activation_Name(activation), " epsilon: ", epsilon,
                        scale ? "" : " no_scale: true", center ? "" : " no_center: true", " }");
  }
  std::vector<std::string> variables() const {
    std::vector<std::string> names;
    if (scale) names.push_back("gamma");
    if (center) names.push_back("beta");
    return names;
  }
};

struct Moments {
  double mean = 0;
  double variance = 0;
};

template <typename Values>
Moments MomentsOf(const Values& x, int64_t channel, int64_t channels) {
  Moments moments;
  const double rows = static_cast<double>(x.size() / channels);
  for (size_t i = channel; i < x.size(); i += channels) moments.mean += x[i] / rows;
  for (size_t i = channel; i < x.size(); i += channels) {
    moments.variance += (x[i] - moments.mean) * (x[i] - moments.mean) / rows;
  }
  return moments;
}

double Normal(const Case& c, double x, const Moments& moments, double gamma, double beta) {
  const double z = gamma * (x - moments.mean) / std::sqrt(moments.variance + c.epsilon) + beta;
  return ReferenceActivation({c.activation}, z);
}

// The arguments are x and the variables that exist: gamma, beta.
std::vector<double> Reference(const Case& c, const std::vector<std::vector<double>>& arguments) {
  const std::vector<double>& x = arguments[0];
  std::vector<double> y(x.size());
  for (int64_t channel = 0; channel < c.channels(); ++channel) {
    const Moments moments = MomentsOf(x, channel, c.channels());
    const double gamma = c.scale ? arguments[1][channel] : 1;
    const double beta = c.center ? arguments.back()[channel] : 0;
    for (size_t i = channel; i < x.size(); i += c.channels()) y[i] = Normal(c, x[i], moments, gamma, beta);
  }
  return y;
}

void ExpectBatchNorm(const Case& c, int threads = 1) {
  LayerRunner runner(MakeBatchNorm, c.Config(), {c.shape}, {c.batch, threads});
  EXPECT_EQ(CompareWithReference(
                &runner, c.variables(), [&](const auto& arguments) { return Reference(c, arguments); }, 5e-5),
            "")
      << c.Config() << " of " << c.batch << " x " << c.shape.ToString();
}

TEST(BatchNormTest, NormalisesScalesCentersAndActivates) {
  for (const config::v1::Activation activation : kAllActivations) {
    ExpectBatchNorm({9, {5}, activation});
    ExpectBatchNorm({9, {5}, activation, false, true});
    ExpectBatchNorm({9, {5}, activation, true, false});
    ExpectBatchNorm({9, {5}, activation, false, false});
  }
}

TEST(BatchNormTest, ChannelsMayEndAnywhereInAVector) {
  for (const int64_t channels : {1, 2, 3, 4, 6, 7, 8, 9, 31, 32, 33, 43}) {
    ExpectBatchNorm({6, {channels}, config::v1::RELU});
    ExpectBatchNorm({6, {channels}, config::v1::TANH});
  }
}

TEST(BatchNormTest, PositionsOfAnImageAreRows) {
  ExpectBatchNorm({2, {3, 4, 3}, config::v1::LEAKY_RELU});
  ExpectBatchNorm({3, {4, 2}, config::v1::GELU});
}

TEST(BatchNormTest, MoreThan256RowsAreSeveralBlocks) {
  ExpectBatchNorm({256, {1}, config::v1::RELU});
  ExpectBatchNorm({257, {2}, config::v1::GELU});
  ExpectBatchNorm({150, {2, 2, 1}, config::v1::LEAKY_RELU}, 3);
}

TEST(BatchNormTest, ReportsTheMomentsOfTheBatch) {
  for (const int64_t batch : {1, 7, 300}) {
    LayerRunner runner(MakeBatchNorm, "name: 'x' batch_norm {}", {Shape{11}}, {batch});
    for (float& x : runner.input()) x = 100 + 3 * x;  // A mean that would cancel a naive sum of squares.
    ASSERT_EQ(runner.Forward(), absl::OkStatus());
    RecordingSink sink(runner.spec());
    sink.OnLoss(0);
    runner.op().ReportUpdates(&sink);
    std::vector<double> means, variances;
    for (int64_t channel = 0; channel < 11; ++channel) {
      const Moments moments = MomentsOf(runner.input(), channel, 11);
      means.push_back(moments.mean);
      variances.push_back(moments.variance);
    }
    EXPECT_EQ(FirstDifference(sink.updates()[0], means, 1e-6), "") << batch;
    EXPECT_EQ(FirstDifference(sink.updates()[1], variances, 1e-5), "") << batch;
  }
}

TEST(BatchNormTest, EvaluationUsesTheMovingAverages) {
  const Case c{300, {11}, config::v1::SIGMOID};
  LayerRunner runner(MakeBatchNorm, c.Config(), {c.shape}, {c.batch});
  ASSERT_EQ(runner.Forward(false), absl::OkStatus());
  std::vector<double> expected;
  for (size_t i = 0; i < runner.input().size(); ++i) {
    const Moments moving = {runner.variable("moving_mean")[i % 11], runner.variable("moving_variance")[i % 11]};
    expected.push_back(
        Normal(c, runner.input()[i], moving, runner.variable("gamma")[i % 11], runner.variable("beta")[i % 11]));
  }
  EXPECT_EQ(FirstDifference(runner.output(), expected, 1e-5), "");
  EXPECT_EQ(runner.violations(), "");
}

TEST(BatchNormTest, EpsilonIsAThousandthWhenAbsent) {
  LayerRunner runner(MakeBatchNorm, "name: 'x' batch_norm {}", {Shape{3}}, {5});
  for (float& x : runner.input()) x *= 0.03f;  // So small that epsilon counts.
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  const std::vector<double> expected = Reference(
      {5, {3}}, {ToDoubles(runner.input()), ToDoubles(runner.variable("gamma")), ToDoubles(runner.variable("beta"))});
  EXPECT_EQ(FirstDifference(runner.output(), expected, 1e-5), "");
}

TEST(BatchNormTest, TheGradientMayReplaceTheOutputs) {
  for (const config::v1::Activation activation : kAllActivations) {
    const Case c{300, {9}, activation};
    LayerRunner runner(MakeBatchNorm, c.Config(), {c.shape}, {c.batch});
    const std::vector<float> weights = RandomFloats(300 * 9, 5);
    ASSERT_EQ(runner.Forward(), absl::OkStatus());
    runner.Backward(weights);
    const std::vector<double> expected = ToDoubles(runner.input_gradient());
    runner.Backward(weights, LayerRunner::InputGradients::kInPlace);
    EXPECT_EQ(FirstDifference(runner.input_gradient(), expected, 0), "") << Activation_Name(activation);
    runner.Backward(weights, LayerRunner::InputGradients::kNone);
    for (const float x : runner.input_gradient()) ASSERT_TRUE(std::isnan(x));
    EXPECT_EQ(runner.violations(), "");
  }
}

TEST(BatchNormTest, OneThreadAndThreeGiveTheSameBits) {
  for (const config::v1::Activation activation : {config::v1::RELU, config::v1::GELU}) {
    const Case c{1100, {13}, activation};
    LayerRunner one(MakeBatchNorm, c.Config(), {c.shape}, {c.batch, 1});
    LayerRunner three(MakeBatchNorm, c.Config(), {c.shape}, {c.batch, 3});
    for (LayerRunner* runner : {&one, &three}) {
      ASSERT_EQ(runner->Forward(), absl::OkStatus());
      runner->Backward(RandomFloats(1100 * 13, 5));
    }
    const auto bits = [](absl::Span<const float> x) {
      return std::string(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float));
    };
    EXPECT_EQ(bits(one.output()), bits(three.output()));
    EXPECT_EQ(bits(one.input_gradient()), bits(three.input_gradient()));
    EXPECT_EQ(bits(one.gradient("gamma")), bits(three.gradient("gamma")));
    EXPECT_EQ(bits(one.gradient("beta")), bits(three.gradient("beta")));
  }
}

TEST(BatchNormTest, ANotANumberStaysInItsChannel) {
  LayerRunner runner(MakeBatchNorm, "name: 'x' batch_norm { activation: RELU }", {Shape{9}}, {300});
  runner.input()[270 * 9 + 8] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 300 * 9; ++i) ASSERT_EQ(std::isnan(runner.output()[i]), i % 9 == 8) << i;
}

TEST(BatchNormTest, DeclaresItsVariablesAndAverages) {
  LayerRunner runner(MakeBatchNorm, "name: 'x' batch_norm { decay: 0.75 }", {Shape{2, 4}}, {});
  const v1::ModelSpec& spec = runner.spec();
  ASSERT_EQ(spec.variables_size(), 4);
  const char* const names[] = {"x/beta", "x/gamma", "x/moving_mean", "x/moving_variance"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(spec.variables(i).name(), names[i]);
    EXPECT_EQ(spec.variables(i).trainable(), i < 2);
    EXPECT_EQ(spec.variables(i).shape(0), 4);
    EXPECT_EQ(spec.variables(i).initializer().has_zeros(), i % 2 == 0);
    EXPECT_EQ(spec.variables(i).initializer().constant().value(), i % 2);
  }
  ASSERT_EQ(spec.update_ops_size(), 2);
  EXPECT_EQ(spec.update_ops(0).variable(), "x/moving_mean");
  EXPECT_EQ(spec.update_ops(1).variable(), "x/moving_variance");
  EXPECT_EQ(spec.update_ops(0).decay(), 0.75f);
  EXPECT_EQ(spec.update_ops(1).decay(), 0.75f);
  EXPECT_FALSE(spec.update_ops(0).zero_debias() || spec.update_ops(1).zero_debias());
}

TEST(BatchNormTest, DebiasesTheMeanAlone) {
  LayerRunner runner(MakeBatchNorm, "name: 'x' batch_norm { zero_debias_moving_mean: true }", {Shape{2, 4}}, {});
  EXPECT_TRUE(runner.spec().update_ops(0).zero_debias());
  EXPECT_FALSE(runner.spec().update_ops(1).zero_debias());
}

TEST(BatchNormTest, RefusesNumbersOutOfRange) {
  const auto message = [](const std::string& config, const Shape& shape) {
    return std::string(LayerStatus(MakeBatchNorm, "name: 'x' batch_norm { " + config + " }", {shape}).message());
  };
  EXPECT_THAT(message("", {}), HasSubstr("not shape []"));
  EXPECT_THAT(message("decay: 1.5", {3}), HasSubstr("decay is 1.5"));
  EXPECT_THAT(message("decay: -0.5", {3}), HasSubstr("decay is -0.5"));
  EXPECT_THAT(message("decay: nan", {3}), HasSubstr("decay is nan"));
  EXPECT_THAT(message("epsilon: 0", {3}), HasSubstr("epsilon is 0"));
  EXPECT_THAT(message("epsilon: 1.5", {3}), HasSubstr("epsilon is 1.5"));
  EXPECT_THAT(message("activation: 99", {3}), HasSubstr("no activation 99"));
  EXPECT_EQ(message("decay: 0 epsilon: 1", {3}), "");
  EXPECT_EQ(message("decay: 1", {3}), "");
  EXPECT_THAT(message("decay: 1 zero_debias_moving_mean: true", {3}), HasSubstr("decay is 1, but must be below 1"));
}

}  // namespace
}  // namespace lockstep

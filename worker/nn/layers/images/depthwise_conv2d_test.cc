#include "lockstep/worker/nn/layers/images/depthwise_conv2d.h"

#include <algorithm>
#include <cmath>
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
  int64_t size = 5;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t channels = 3;
  int64_t multiplier = 1;
  int64_t batch = 2;
  config::v1::Activation activation = config::v1::NONE;
  bool bias = true;

  int64_t output() const { return (size + stride - 1) / stride; }
  int64_t padding() const { return std::max<int64_t>(0, (output() - 1) * stride + kernel - size) / 2; }
  std::string Config() const {
    return absl::StrCat("name: 'x' depthwise_conv2d { kernel: ", kernel, " strides: ", stride,
                        " multiplier: ", multiplier, " activation: ", Activation_Name(activation), " no_bias: ", !bias,
                        " }");
  }
};

std::vector<double> Reference(const Case& c, const std::vector<std::vector<double>>& arguments) {
  std::vector<double> result;
  const int64_t outputs = c.channels * c.multiplier;
  for (int64_t i = 0; i < c.batch * c.output() * c.output() * outputs; ++i) {
    const int64_t n = i % outputs, pixel = i / outputs;
    const int64_t image = pixel / (c.output() * c.output());
    const int64_t top = pixel / c.output() % c.output() * c.stride - c.padding();
    const int64_t left = pixel % c.output() * c.stride - c.padding();
    double sum = c.bias ? arguments[2][n] : 0;
    for (int64_t place = 0; place < c.kernel * c.kernel; ++place) {
      const int64_t y = top + place / c.kernel, x = left + place % c.kernel;
      if (y < 0 || y >= c.size || x < 0 || x >= c.size) continue;
      sum += arguments[0][((image * c.size + y) * c.size + x) * c.channels + n / c.multiplier] *
             arguments[1][place * outputs + n];
    }
    result.push_back(ReferenceActivation({c.activation}, sum));
  }
  return result;
}

void ExpectConvolution(const Case& c, int threads = 1) {
  LayerRunner runner(MakeDepthwiseConv2d, c.Config(), {Shape{c.size, c.size, c.channels}}, {c.batch, threads});
  const std::vector<std::string> variables =
      c.bias ? std::vector<std::string>{"kernel", "bias"} : std::vector<std::string>{"kernel"};
  EXPECT_EQ(CompareWithReference(
                &runner, variables, [&](const auto& arguments) { return Reference(c, arguments); }, 3e-5),
            "")
      << c.Config();
}

TEST(DepthwiseConv2dTest, EachChannelHasKernelsOfItsOwn) {
  for (const int64_t stride : {1, 2}) {
    for (const int64_t multiplier : {1, 2, 3}) {
      ExpectConvolution({5, 3, stride, 3, multiplier});
      ExpectConvolution({6, 2, stride, 1, multiplier});
      ExpectConvolution({4, 1, stride, 9, multiplier, 1, config::v1::NONE, /*bias=*/false});
    }
  }
}

TEST(DepthwiseConv2dTest, ActivatesAndHasItsGradients) {
  for (const config::v1::Activation activation : kAllActivations) {
    if (activation == config::v1::RELU || activation == config::v1::LEAKY_RELU || activation == config::v1::RELU6) {
      continue;  // The numeric gradient is wrong near a kink. conv2d's tests cover these.
    }
    ExpectConvolution({4, 3, 1, 2, 2, 2, activation});
  }
}

TEST(DepthwiseConv2dTest, ThreadsShareImagesAndKernels) { ExpectConvolution({5, 3, 2, 5, 2, 6}, 3); }

TEST(DepthwiseConv2dTest, DoesNotComputeAnUnwantedGradient) {
  const Case c = {4, 3, 1, 2, 2, 1};
  LayerRunner runner(MakeDepthwiseConv2d, c.Config(), {Shape{4, 4, 2}}, {});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  runner.Backward(RandomFloats(64, 1), LayerRunner::InputGradients::kNone);
  for (const float x : runner.input_gradient()) EXPECT_TRUE(std::isnan(x));
}

TEST(DepthwiseConv2dTest, RefusesNumbersOutOfRange) {
  const auto message = [](const std::string& options, const Shape& input) {
    return std::string(
        LayerStatus(MakeDepthwiseConv2d, "name: 'x' depthwise_conv2d { " + options + " }", {input}).message());
  };
  EXPECT_THAT(message("kernel: 3", Shape{5}), HasSubstr("not shape [5]"));
  EXPECT_THAT(message("kernel: 3 multiplier: -1", Shape{5, 5, 2}), HasSubstr("multiplier is -1"));
  EXPECT_THAT(message("kernel: 3 multiplier: 1000000000", Shape{5, 5, 2}), HasSubstr("elements"));
}

}  // namespace
}  // namespace lockstep

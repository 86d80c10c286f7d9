#include "lockstep/worker/nn/layers/images/conv2d.h"

#include <algorithm>
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

struct Dimension {
  int64_t input = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  bool same = false;

  int64_t output() const { return same ? (input + stride - 1) / stride : (input - kernel) / stride + 1; }
  int64_t padding() const { return same ? std::max<int64_t>(0, (output() - 1) * stride + kernel - input) / 2 : 0; }
};

struct Case {
  Dimension y;
  Dimension x;
  int64_t channels = 1;
  int64_t filters = 1;
  int64_t batch = 1;
  config::v1::Activation activation = config::v1::NONE;
  bool bias = true;

  std::string Config() const {
    return absl::StrCat("name: 'x' conv2d { filters: ", filters, " kernel: ", y.kernel, " kernel: ", x.kernel,
                        " strides: ", y.stride, " strides: ", x.stride, " padding: ", y.same ? "SAME" : "VALID",
                        " activation: ", Activation_Name(activation), " no_bias: ", bias ? "false" : "true", " }");
  }
};

// Computes the formula of conv2d.h for arguments x, W and, if the layer has one, b.
std::vector<double> Reference(const Case& c, const std::vector<std::vector<double>>& arguments) {
  const auto at = [&](int64_t image, int64_t y, int64_t x, int64_t channel) {
    const bool inside = y >= 0 && y < c.y.input && x >= 0 && x < c.x.input;
    return inside ? arguments[0][((image * c.y.input + y) * c.x.input + x) * c.channels + channel] : 0;
  };
  std::vector<double> result;
  for (int64_t pixel = 0; pixel < c.batch * c.y.output() * c.x.output(); ++pixel) {
    const int64_t image = pixel / (c.y.output() * c.x.output());
    const int64_t top = pixel / c.x.output() % c.y.output() * c.y.stride - c.y.padding();
    const int64_t left = pixel % c.x.output() * c.x.stride - c.x.padding();
    for (int64_t n = 0; n < c.filters; ++n) {
      double sum = c.bias ? arguments[2][n] : 0;
      for (int64_t i = 0; i < c.y.kernel * c.x.kernel * c.channels; ++i) {
        const int64_t tap = i / c.channels;
        sum += at(image, top + tap / c.x.kernel, left + tap % c.x.kernel, i % c.channels) *
               arguments[1][i * c.filters + n];
      }
      result.push_back(ReferenceActivation({c.activation}, sum));
    }
  }
  return result;
}

void ExpectConvolution(const Case& c, int threads = 1) {
  LayerRunner runner(MakeConv2d, c.Config(), {Shape{c.y.input, c.x.input, c.channels}}, {c.batch, threads});
  const std::vector<std::string> variables =
      c.bias ? std::vector<std::string>{"kernel", "bias"} : std::vector<std::string>{"kernel"};
  EXPECT_EQ(CompareWithReference(
                &runner, variables, [&](const auto& arguments) { return Reference(c, arguments); }, 3e-5),
            "")
      << c.Config() << " over " << c.y.input << " x " << c.x.input << " x " << c.channels;
}

TEST(Conv2dTest, CorrelatesAddsTheBiasAndActivates) {
  for (const config::v1::Activation activation : kAllActivations) {
    ExpectConvolution({{4, 3, 1, true}, {5, 2, 1, true}, 2, 3, 2, activation, true});
    ExpectConvolution({{4, 3, 1, false}, {5, 2, 1, false}, 2, 3, 2, activation, false});
  }
}

TEST(Conv2dTest, HeightAndWidthHaveNumbersOfTheirOwn) {
  for (const bool same : {false, true}) {
    ExpectConvolution({{5, 2, 1, same}, {7, 3, 2, same}, 2, 3, 2});
    ExpectConvolution({{7, 3, 3, same}, {5, 1, 1, same}, 2, 3, 2});
    ExpectConvolution({{6, 1, 2, same}, {6, 4, 1, same}, 1, 2, 2});
    ExpectConvolution({{8, 2, 4, same}, {4, 4, 4, same}, 1, 2, 2});
  }
  ExpectConvolution({{2, 5, 1, true}, {1, 3, 2, true}, 2, 2, 2});
  ExpectConvolution({{1, 1, 1, true}, {1, 1, 1, true}, 1, 1, 1});
}

TEST(Conv2dTest, FiltersAndChannelsMayEndInAPanel) {
  for (const int64_t size : {7, 8, 9, 15, 16, 17, 33}) {
    ExpectConvolution({{3, 2, 1, true}, {3, 2, 1, true}, 1, size, 1, config::v1::RELU});
    ExpectConvolution({{3, 2, 1, false}, {3, 2, 1, false}, size, 2, 1, config::v1::GELU});
  }
}

TEST(Conv2dTest, PixelsMayEndAnywhereInATile) {
  for (int64_t width = 1; width <= 13; ++width) {
    ExpectConvolution({{1, 1, 1, false}, {width, 1, 1, false}, 2, 2, 2, config::v1::TANH});
  }
}

TEST(Conv2dTest, ThreadsShareTheImages) {
  ExpectConvolution({{4, 3, 1, true}, {4, 3, 1, true}, 2, 3, 7, config::v1::GELU}, 3);
  ExpectConvolution({{4, 3, 1, false}, {4, 3, 1, false}, 2, 3, 7, config::v1::RELU}, 3);
}

TEST(Conv2dTest, ASmallerBatchIsComputedAlone) {
  const Case c{{4, 3, 1, true}, {4, 3, 1, true}, 2, 3, 5, config::v1::GELU};
  LayerRunner runner(MakeConv2d, c.Config(), {Shape{4, 4, 2}}, {5});
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  const std::vector<float> whole(runner.output().begin(), runner.output().end());
  runner.Backward(RandomFloats(5 * 4 * 4 * 3, 1));
  runner.set_batch(2);
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (size_t i = 0; i < runner.output().size(); ++i) EXPECT_EQ(runner.output()[i], whole[i]);
  EXPECT_EQ(runner.violations(), "");
}

TEST(Conv2dTest, AnImageWithoutChannelsHasOne) {
  LayerRunner runner(MakeConv2d, "name: 'x' conv2d { filters: 2 kernel: 3 }", {Shape{4, 5}}, {});
  EXPECT_EQ(runner.op().output_shape(), (Shape{4, 5, 2}));
  EXPECT_EQ(runner.variable("kernel").size(), 18u);
  EXPECT_EQ(runner.op().multiply_adds(), 4 * 5 * 2 * 9);
}

TEST(Conv2dTest, ANotANumberStaysInItsWindows) {
  LayerRunner runner(MakeConv2d, "name: 'x' conv2d { filters: 3 kernel: 3 }", {Shape{5, 5, 2}}, {2});
  runner.input()[(2 * 5 + 1) * 2] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(runner.Forward(), absl::OkStatus());
  for (int i = 0; i < 2 * 5 * 5 * 3; ++i) {
    const int y = i / 3 / 5 % 5;
    const int x = i / 3 % 5;
    const bool reached = i < 5 * 5 * 3 && y >= 1 && y <= 3 && x <= 2;
    EXPECT_EQ(std::isnan(runner.output()[i]), reached) << i;
  }
}

TEST(Conv2dTest, RefusesNumbersOutOfRange) {
  const auto message = [](const std::string& config) {
    return std::string(LayerStatus(MakeConv2d, "name: 'x' conv2d { " + config + " }", {Shape{200, 200, 1}}).message());
  };
  EXPECT_THAT(message("filters: 0 kernel: 3"), HasSubstr("filters is 0"));
  EXPECT_THAT(message("filters: 1 kernel: 3 strides: 65"), HasSubstr("stride 65"));
  EXPECT_THAT(message("filters: 1 kernel: 3 activation: 99"), HasSubstr("no activation 99"));
  EXPECT_EQ(message("filters: 1 kernel: 3 strides: 64"), "");
}

}  // namespace
}  // namespace lockstep

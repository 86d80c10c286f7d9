#include "lockstep/worker/nn/layers/images/separable_conv2d.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/worker/nn/layers/images/conv2d.h"
#include "lockstep/worker/nn/layers/images/depthwise_conv2d.h"
#include "lockstep/worker/nn/testing/layer_runner.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

template <typename Values>
void Copy(const Values& from, absl::Span<float> to) {
  ASSERT_EQ(from.size(), to.size());
  std::copy(from.begin(), from.end(), to.begin());
}

TEST(SeparableConv2dTest, HasTheBitsOfItsTwoLayers) {
  LayerRunner both(MakeSeparableConv2d,
                   "name: 'x' separable_conv2d { filters: 4 kernel: 3 strides: 2 multiplier: 2 activation: TANH }",
                   {Shape{7, 6, 3}}, {2, 2});
  LayerRunner depthwise(MakeDepthwiseConv2d,
                        "name: 'x' depthwise_conv2d { kernel: 3 strides: 2 multiplier: 2 no_bias: true }",
                        {Shape{7, 6, 3}}, {2});
  LayerRunner pointwise(MakeConv2d, "name: 'x' conv2d { filters: 4 kernel: 1 activation: TANH }", {Shape{4, 3, 6}},
                        {2});
  Copy(both.input(), depthwise.input());
  Copy(both.variable("depthwise/kernel"), depthwise.variable("kernel"));
  Copy(both.variable("pointwise/kernel"), pointwise.variable("kernel"));
  Copy(both.variable("pointwise/bias"), pointwise.variable("bias"));
  EXPECT_EQ(both.op().output_shape(), (Shape{4, 3, 4}));
  EXPECT_EQ(both.op().multiply_adds(), depthwise.op().multiply_adds() + pointwise.op().multiply_adds());
  ASSERT_EQ(both.Forward(), absl::OkStatus());
  ASSERT_EQ(depthwise.Forward(), absl::OkStatus());
  Copy(depthwise.output(), pointwise.input());
  ASSERT_EQ(pointwise.Forward(), absl::OkStatus());
  EXPECT_EQ(FirstDifference(both.output(), ToDoubles(pointwise.output()), 0), "");
  const std::vector<float> weights = RandomFloats(2 * 4 * 3 * 4, 5);
  both.Backward(weights);
  pointwise.Backward(weights);
  depthwise.Backward(pointwise.input_gradient());
  EXPECT_EQ(FirstDifference(both.input_gradient(), ToDoubles(depthwise.input_gradient()), 0), "");
  EXPECT_EQ(FirstDifference(both.gradient("depthwise/kernel"), ToDoubles(depthwise.gradient("kernel")), 0), "");
  EXPECT_EQ(FirstDifference(both.gradient("pointwise/kernel"), ToDoubles(pointwise.gradient("kernel")), 0), "");
  EXPECT_EQ(FirstDifference(both.gradient("pointwise/bias"), ToDoubles(pointwise.gradient("bias")), 0), "");
  EXPECT_EQ(both.violations(), "");
}

TEST(SeparableConv2dTest, ErrorsNameTheLayer) {
  EXPECT_THAT(
      std::string(
          LayerStatus(MakeSeparableConv2d, "name: 'x' separable_conv2d { kernel: 3 }", {Shape{5, 5, 2}}).message()),
      HasSubstr("layer 'x/pointwise': filters is 0"));
}

}  // namespace
}  // namespace lockstep

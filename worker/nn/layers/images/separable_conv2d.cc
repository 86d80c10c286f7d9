#include "lockstep/worker/nn/layers/images/separable_conv2d.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/compute/workspace.h"
#include "lockstep/worker/nn/layers/images/conv2d.h"
#include "lockstep/worker/nn/layers/images/depthwise_conv2d.h"

namespace lockstep {
namespace {

class SeparableConv2dOp : public LayerOp {
 public:
  SeparableConv2dOp(std::unique_ptr<LayerOp> depthwise, std::unique_ptr<LayerOp> pointwise)
      : LayerOp(pointwise->output_shape()), depthwise_(std::move(depthwise)), pointwise_(std::move(pointwise)) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    float* const middle = middle_.Get(pass.batch * middle_size());
    RETURN_IF_ERROR(depthwise_->Forward(pass, inputs, middle));
    return pointwise_->Forward(pass, {middle}, output);
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    const float* const middle = middle_.data();
    float* const middle_gradient = middle_gradient_.Get(pass.batch * middle_size());
    pointwise_->Backward(pass, {middle}, output, output_gradient, {middle_gradient}, gradients);
    depthwise_->Backward(pass, inputs, middle, middle_gradient, input_gradients, gradients);
  }

  int64_t multiply_adds() const override { return depthwise_->multiply_adds() + pointwise_->multiply_adds(); }

 private:
  int64_t middle_size() const { return depthwise_->output_shape().num_elements(); }

  const std::unique_ptr<LayerOp> depthwise_;
  const std::unique_ptr<LayerOp> pointwise_;
  // The output of the depthwise convolution, and its gradient.
  Workspace<float> middle_;
  Workspace<float> middle_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeSeparableConv2d(LayerBuilder* builder) {
  const config::v1::Layer::SeparableConv2d& config = builder->config().separable_conv2d();
  config::v1::Layer depthwise, pointwise;
  depthwise.set_name(absl::StrCat(builder->config().name(), "/depthwise"));
  auto* const first = depthwise.mutable_depthwise_conv2d();
  *first->mutable_kernel() = config.kernel();
  *first->mutable_strides() = config.strides();
  first->set_padding(config.padding());
  if (config.has_multiplier()) first->set_multiplier(config.multiplier());
  first->set_no_bias(true);
  if (config.has_depthwise_initializer()) *first->mutable_kernel_initializer() = config.depthwise_initializer();
  LayerBuilder depthwise_builder(depthwise, builder->input_shapes(), builder->spec());
  ASSIGN_OR_RETURN(std::unique_ptr<LayerOp> depthwise_op, MakeDepthwiseConv2d(&depthwise_builder));

  pointwise.set_name(absl::StrCat(builder->config().name(), "/pointwise"));
  auto* const second = pointwise.mutable_conv2d();
  second->set_filters(config.filters());
  second->add_kernel(1);
  second->set_activation(config.activation());
  second->set_no_bias(config.no_bias());
  if (config.has_pointwise_initializer()) *second->mutable_kernel_initializer() = config.pointwise_initializer();
  if (config.has_bias_initializer()) *second->mutable_bias_initializer() = config.bias_initializer();
  const Shape middle[] = {depthwise_op->output_shape()};
  LayerBuilder pointwise_builder(pointwise, middle, builder->spec());
  ASSIGN_OR_RETURN(std::unique_ptr<LayerOp> pointwise_op, MakeConv2d(&pointwise_builder));
  return std::make_unique<SeparableConv2dOp>(std::move(depthwise_op), std::move(pointwise_op));
}

}  // namespace lockstep

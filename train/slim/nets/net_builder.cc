#include "lockstep/train/slim/nets/net_builder.h"

#include "absl/strings/str_cat.h"

namespace lockstep::train::slim::nets {
namespace {

// Sets the kernel, strides and padding of a Conv2d or a DepthwiseConv2d.
template <typename Convolution>
void SetWindow(const NetBuilder::Window& window, Convolution* convolution) {
  convolution->add_kernel(window.size);
  convolution->add_strides(window.stride);
  convolution->set_padding(window.padding);
}

}  // namespace

NetBuilder::NetBuilder(const Options& options, config::v1::ModelConfig* model) : options_(options), model_(model) {}

config::v1::Layer* NetBuilder::Add(const std::string& name, const std::string& input) {
  config::v1::Layer* const layer = model_->add_layer();
  layer->set_name(absl::StrCat(options_.scope, "/", name));
  if (!input.empty()) layer->add_input(input);
  return layer;
}

std::string NetBuilder::Finish(const std::string& name, bool linear) {
  config::v1::Layer* const layer = Add(absl::StrCat(name, "/BatchNorm"), "");
  *layer->mutable_batch_norm() = *options_.batch_norm;
  layer->mutable_batch_norm()->set_activation(linear ? config::v1::NONE : options_.activation);
  return layer->name();
}

std::string NetBuilder::Conv(const std::string& name, const std::string& input, int64_t filters, const Window& window,
                             bool linear) {
  config::v1::Layer* const layer = Add(name, input);
  config::v1::Layer::Conv2d* const conv = layer->mutable_conv2d();
  conv->set_filters(filters);
  SetWindow(window, conv);
  *conv->mutable_kernel_initializer() = options_.initializer;
  if (options_.batch_norm == nullptr) {
    conv->set_activation(linear ? config::v1::NONE : options_.activation);
    return layer->name();
  }
  conv->set_no_bias(true);
  return Finish(name, linear);
}

std::string NetBuilder::Depthwise(const std::string& name, const std::string& input, const Window& window) {
  config::v1::Layer* const layer = Add(name, input);
  config::v1::Layer::DepthwiseConv2d* const conv = layer->mutable_depthwise_conv2d();
  SetWindow(window, conv);
  *conv->mutable_kernel_initializer() = options_.initializer;
  if (options_.batch_norm == nullptr) {
    conv->set_activation(options_.activation);
    return layer->name();
  }
  conv->set_no_bias(true);
  return Finish(name, /*linear=*/false);
}

std::string NetBuilder::Logits(const std::string& name, int64_t classes, const v1::Initializer& initializer) {
  config::v1::Layer* const layer = Add(name, "");
  layer->mutable_conv2d()->set_filters(classes);
  SetWindow({1, 1, config::v1::SAME}, layer->mutable_conv2d());
  *layer->mutable_conv2d()->mutable_kernel_initializer() = initializer;
  return layer->name();
}

std::string NetBuilder::MaxPool(const std::string& name, const std::string& input, const Window& window) {
  config::v1::Layer* const layer = Add(name, input);
  config::v1::Layer::Pool* const pool = layer->mutable_max_pool();
  pool->add_window(window.size);
  pool->add_strides(window.stride);
  pool->set_padding(window.padding);
  return layer->name();
}

std::string NetBuilder::Concat(const std::string& name, const std::vector<std::string>& inputs) {
  config::v1::Layer* const layer = Add(name, "");
  for (const std::string& input : inputs) layer->add_input(input);
  layer->mutable_concat();
  return layer->name();
}

std::string NetBuilder::Residual(const std::string& name, const std::string& shortcut, const std::string& residual) {
  config::v1::Layer* const sum = Add(absl::StrCat(name, "/add"), shortcut);
  sum->add_input(residual);
  sum->mutable_add();
  config::v1::Layer* const layer = Add(name, "");
  layer->mutable_activation()->set_kind(options_.activation);
  return layer->name();
}

std::string NetBuilder::Dropout(const std::string& name, float rate) {
  config::v1::Layer* const layer = Add(name, "");
  layer->mutable_dropout()->set_rate(rate);
  return layer->name();
}

std::string NetBuilder::Mean(const std::string& name, int64_t channels) {
  Add(absl::StrCat(name, "/mean"), "")->mutable_global_average_pool();
  config::v1::Layer* const layer = Add(name, "");
  for (const int64_t dim : {int64_t{1}, int64_t{1}, channels}) layer->mutable_reshape()->add_shape(dim);
  return layer->name();
}

std::string NetBuilder::Flatten(const std::string& name) {
  config::v1::Layer* const layer = Add(name, "");
  layer->mutable_flatten();
  return layer->name();
}

}  // namespace lockstep::train::slim::nets

#include "lockstep/worker/nn/layers/images/depthwise_conv2d.h"

#include <algorithm>
#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/images/depthwise.h"
#include "lockstep/worker/nn/compute/activation.h"
#include "lockstep/worker/nn/compute/bias_gradient.h"
#include "lockstep/worker/nn/compute/workspace.h"
#include "lockstep/worker/nn/layers/images/window.h"

namespace lockstep {
namespace {

constexpr int kNoBias = -1;

struct DepthwiseOptions {
  // The geometry for the input's channels. The output has `multiplier` times as many channels.
  WindowGeometry geometry;
  int64_t multiplier = 1;
  ActivationFunction activation;
  int kernel = 0;
  int bias = kNoBias;
};

// Copies each number in `from` to `times` consecutive places in `to`.
void Repeat(int64_t size, int64_t times, const float* from, float* to) {
  for (int64_t i = 0; i < size; ++i) to = std::fill_n(to, times, from[i]);
}

// Sets each number in `to` to the sum of the next `times` numbers in `from`, added in order.
void SumRepeated(int64_t size, int64_t times, const float* from, float* to) {
  for (int64_t i = 0; i < size; ++i, from += times) {
    float sum = from[0];
    for (int64_t q = 1; q < times; ++q) sum += from[q];
    to[i] = sum;
  }
}

class DepthwiseConv2dOp : public LayerOp {
 public:
  DepthwiseConv2dOp(Shape output_shape, const DepthwiseOptions& options)
      : LayerOp(std::move(output_shape)), options_(options), geometry_(options_.geometry) {
    // A layer with a multiplier is computed as one without, on an input in which each channel is repeated `multiplier`
    // times.
    geometry_.channels *= options_.multiplier;
  }

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    float* const repeated = repeats() ? repeated_.Get(pass.batch * repeated_size()) : nullptr;
    float* sum = output;
    if (pass.training && GradientNeedsInput(options_.activation)) sum = sum_.Get(pass.batch * output_size());
    const float* const kernel = pass.values[options_.kernel];
    const float* const bias = options_.bias == kNoBias ? nullptr : pass.values[options_.bias];
    pass.compute->ParallelFor(pass.batch, [&](int64_t i) {
      const float* image = inputs[0] + i * input_size();
      if (repeats()) {
        Repeat(input_size(), options_.multiplier, image, repeated + i * repeated_size());
        image = repeated + i * repeated_size();
      }
      DepthwiseImage(geometry_, image, kernel, bias, sum + i * output_size());
      Activate(options_.activation, output_size(), sum + i * output_size(), output + i * output_size());
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    const float* const value = GradientNeedsInput(options_.activation) ? sum_.data() : output;
    const int64_t pixels = pass.batch * geometry_.y.output * geometry_.x.output;
    bias_gradient_.Compute(pass.compute, options_.activation, pixels, geometry_.channels, value, output_gradient,
                           output_gradient, options_.bias == kNoBias ? nullptr : gradients->Buffer(options_.bias));
    if (options_.bias != kNoBias) gradients->Final(options_.bias);
    const float* const images = repeats() ? repeated_.data() : inputs[0];
    float* const kernel_gradient = gradients->Buffer(options_.kernel);
    pass.compute->ParallelFor(geometry_.y.size * geometry_.x.size, [&](int64_t place) {
      DepthwiseKernelGradient(geometry_, pass.batch, images, output_gradient, place, place + 1, kernel_gradient);
    });
    gradients->Final(options_.kernel);
    if (input_gradients[0] != nullptr) InputGradients(pass, output_gradient, input_gradients[0]);
  }

  int64_t multiply_adds() const override { return output_size() * geometry_.y.size * geometry_.x.size; }

 private:
  bool repeats() const { return options_.multiplier > 1; }
  int64_t input_size() const { return geometry_.y.input * geometry_.x.input * options_.geometry.channels; }
  int64_t repeated_size() const { return input_size() * options_.multiplier; }
  int64_t output_size() const { return output_shape().num_elements(); }

  void InputGradients(const Pass& pass, const float* output_gradient, float* input_gradient) {
    const float* const kernel = pass.values[options_.kernel];
    // The repeated input is no longer needed, so its memory is reused.
    float* const repeated = repeats() ? repeated_.data() : nullptr;
    pass.compute->ParallelFor(pass.batch, [&](int64_t i) {
      float* const gradient = input_gradient + i * input_size();
      float* const of_repeated = repeats() ? repeated + i * repeated_size() : gradient;
      DepthwiseInputGradient(geometry_, output_gradient + i * output_size(), kernel, of_repeated);
      if (repeats()) SumRepeated(input_size(), options_.multiplier, of_repeated, gradient);
    });
  }

  const DepthwiseOptions options_;
  WindowGeometry geometry_;
  // The last batch's input, with each channel repeated for its kernels.
  Workspace<float> repeated_;
  // The convolution with bias, kept for activations whose gradient needs it.
  Workspace<float> sum_;
  BiasGradient bias_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeDepthwiseConv2d(LayerBuilder* builder) {
  const config::v1::Layer::DepthwiseConv2d& config = builder->config().depthwise_conv2d();
  DepthwiseOptions options;
  ASSIGN_OR_RETURN(options.geometry,
                   MakeWindowGeometry(*builder, config.kernel(), config.strides(), 1, config.padding()));
  RETURN_IF_ERROR(builder->CheckActivation(config.activation()));
  options.multiplier = config.multiplier();
  if (options.multiplier < 1 || options.multiplier > kMaxElements) {
    return builder->Error("multiplier is ", options.multiplier, ", but must be at least 1");
  }
  options.activation.kind = config.activation();
  const SlidingWindow& y = options.geometry.y;
  const SlidingWindow& x = options.geometry.x;
  const int64_t channels = options.geometry.channels;
  // Both the output and the repeated input must have a valid size.
  RETURN_IF_ERROR(builder->OutputShape({y.input, x.input, channels, options.multiplier}).status());
  ASSIGN_OR_RETURN(Shape output, builder->OutputShape({y.output, x.output, channels * options.multiplier}));
  ASSIGN_OR_RETURN(options.kernel, builder->AddVariable("kernel", {y.size, x.size, channels, options.multiplier},
                                                        config.kernel_initializer()));
  if (!config.no_bias()) {
    ASSIGN_OR_RETURN(options.bias,
                     builder->AddVariable("bias", {channels * options.multiplier}, config.bias_initializer()));
  }
  return std::make_unique<DepthwiseConv2dOp>(std::move(output), options);
}

}  // namespace lockstep

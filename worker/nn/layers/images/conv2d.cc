#include "lockstep/worker/nn/layers/images/conv2d.h"

#include <algorithm>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/products/convolution.h"
#include "lockstep/worker/nn/compute/activation.h"
#include "lockstep/worker/nn/compute/bias_gradient.h"
#include "lockstep/worker/nn/compute/conv_input_gradient.h"
#include "lockstep/worker/nn/compute/padded_images.h"
#include "lockstep/worker/nn/compute/workspace.h"
#include "lockstep/worker/nn/layers/images/window.h"

namespace lockstep {
namespace {

constexpr int kNoBias = -1;
// Limits the number of phases of the input gradient, which is stride x stride (see ConvInputGradient).
constexpr int64_t kMaxStride = 64;

PaddedImages::Border InputBorder(const WindowGeometry& geometry) {
  const auto after = [](const SlidingWindow& w) { return std::max<int64_t>(0, w.span() - w.padding - w.input); };
  return {geometry.y.padding, after(geometry.y), geometry.x.padding, after(geometry.x)};
}

struct Conv2dOptions {
  WindowGeometry geometry;
  int64_t filters = 0;
  ActivationFunction activation;
  int kernel = 0;
  int bias = kNoBias;
};

class Conv2dOp : public LayerOp {
 public:
  Conv2dOp(Shape output_shape, const Conv2dOptions& options)
      : LayerOp(std::move(output_shape)),
        options_(options),
        geometry_(options_.geometry),
        filters_(options.filters),
        padded_(geometry_.y.input, geometry_.x.input, geometry_.channels, InputBorder(geometry_)),
        patch_{geometry_.y.size, geometry_.x.size * geometry_.channels, 1, padded_.row_size()},
        input_gradient_(geometry_, filters_) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    float* panels = panels_.Get(PaddedColumns(filters_) * patch_size());
    PackPanels(RowMajor(pass.values[options_.kernel], patch_size(), filters_), panels);
    CopyBias(options_.bias == kNoBias ? nullptr : pass.values[options_.bias]);
    float* sum = nullptr;
    if (pass.training && GradientNeedsInput(options_.activation)) sum = sum_.Get(pass.batch * output_size());
    if (padded_.needed()) padded_.Reserve(pass.batch);
    pass.compute->ParallelFor(pass.batch, [&](int64_t i) {
      if (padded_.needed()) padded_.Copy(i, inputs[0] + i * input_size());
      const float* image = Image(inputs[0], i);
      float* image_sum = sum == nullptr ? nullptr : sum + i * output_size();
      ForwardImage(image, image_sum, output + i * output_size());
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    const float* value = GradientNeedsInput(options_.activation) ? sum_.data() : output;
    const int64_t pixels = pass.batch * geometry_.y.output * geometry_.x.output;
    bias_gradient_.Compute(pass.compute, options_.activation, pixels, filters_, value, output_gradient, output_gradient,
                           options_.bias == kNoBias ? nullptr : gradients->Buffer(options_.bias));
    if (options_.bias != kNoBias) gradients->Final(options_.bias);
    KernelGradientInput input;
    input.images = Image(inputs[0], 0);
    input.image_size = padded_.image_size();
    input.gradients = output_gradient;
    input.count = pass.batch;
    input.height = geometry_.y.output;
    input.width = geometry_.x.output;
    input.columns = filters_;
    input.pixel_stride = geometry_.x.stride * geometry_.channels;
    input.row_stride = geometry_.y.stride * padded_.row_size();
    input.patch = patch_;
    float* kernel_gradient = gradients->Buffer(options_.kernel);
    const int64_t blocks = NumKernelGradientBlocks(input);
    const int64_t share = (blocks + pass.compute->threads() - 1) / pass.compute->threads();
    pass.compute->ParallelRanges(
        blocks, share, [&](int64_t begin, int64_t end) { KernelGradientBlocks(input, begin, end, kernel_gradient); });
    gradients->Final(options_.kernel);
    if (input_gradients[0] == nullptr) return;
    input_gradient_.Compute(pass.compute, pass.batch, output_gradient, pass.values[options_.kernel],
                            input_gradients[0]);
  }

  int64_t multiply_adds() const override { return output_size() * patch_size(); }

 private:
  int64_t patch_size() const { return patch_.runs * patch_.length; }
  int64_t output_size() const { return output_shape().num_elements(); }
  int64_t input_size() const { return geometry_.y.input * geometry_.x.input * geometry_.channels; }
  // Returns image `i`, including its border if it has one.
  const float* Image(const float* input, int64_t i) const {
    return padded_.needed() ? padded_.image(i) : input + i * input_size();
  }

  // Copies the bias to bias_, or sets bias_ to zeros if there is none.
  void CopyBias(const float* bias) {
    float* copy = bias_.Get(filters_);
    if (bias != nullptr) {
      std::copy_n(bias, filters_, copy);
    } else {
      std::fill_n(copy, filters_, 0.0f);
    }
  }

  void ForwardImage(const float* image, float* sum, float* output) const {
    const SlidingWindow& y = geometry_.y;
    const SlidingWindow& x = geometry_.x;
    const PixelGrid from{y.output, x.output, y.stride * padded_.row_size(), x.stride * geometry_.channels};
    const PixelGrid to{y.output, x.output, x.output * filters_, filters_};
    float* const result = sum == nullptr ? output : sum;
    MultiplyPatches(image, from, patch_, panels_.data(), filters_, bias_.data(), result, to);
    Activate(options_.activation, output_size(), result, output);
  }

  const Conv2dOptions options_;
  const WindowGeometry& geometry_;
  const int64_t filters_;
  // The last batch's input.
  PaddedImages padded_;
  const TileElements patch_;
  Workspace<float> panels_;
  // [filters]
  Workspace<float> bias_;
  // The convolution with bias, kept for activations whose gradient needs it.
  Workspace<float> sum_;
  BiasGradient bias_gradient_;
  ConvInputGradient input_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeConv2d(LayerBuilder* builder) {
  const config::v1::Layer::Conv2d& config = builder->config().conv2d();
  Conv2dOptions options;
  ASSIGN_OR_RETURN(options.geometry,
                   MakeWindowGeometry(*builder, config.kernel(), config.strides(), 1, config.padding()));
  RETURN_IF_ERROR(builder->CheckActivation(config.activation()));
  if (config.filters() < 1) return builder->Error("filters is ", config.filters(), ", but must be at least 1");
  options.filters = config.filters();
  options.activation.kind = config.activation();
  const SlidingWindow& y = options.geometry.y;
  const SlidingWindow& x = options.geometry.x;
  if (std::max(y.stride, x.stride) > kMaxStride) {
    return builder->Error("stride ", std::max(y.stride, x.stride), " is larger than ", kMaxStride);
  }
  ASSIGN_OR_RETURN(Shape output, builder->OutputShape({y.output, x.output, options.filters}));
  // The input with its border must have a valid size too.
  const PaddedImages::Border border = InputBorder(options.geometry);
  RETURN_IF_ERROR(builder
                      ->OutputShape({y.input + border.top + border.bottom, x.input + border.left + border.right,
                                     options.geometry.channels})
                      .status());
  ASSIGN_OR_RETURN(options.kernel,
                   builder->AddVariable("kernel", {y.size, x.size, options.geometry.channels, options.filters},
                                        config.kernel_initializer()));
  if (!config.no_bias()) {
    ASSIGN_OR_RETURN(options.bias, builder->AddVariable("bias", {options.filters}, config.bias_initializer()));
  }
  return std::make_unique<Conv2dOp>(std::move(output), options);
}

}  // namespace lockstep

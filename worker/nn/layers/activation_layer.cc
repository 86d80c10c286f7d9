#include "lockstep/worker/nn/layers/activation_layer.h"

#include <cmath>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/compute/activation.h"

namespace lockstep {
namespace {

// Elements computed together, a multiple of 8.
constexpr int64_t kBlock = 16384;

class ActivationOp : public LayerOp {
 public:
  ActivationOp(Shape shape, const ActivationFunction& function)
      : LayerOp(shape), function_(function), size_(shape.num_elements()) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    pass.compute->ParallelRanges(pass.batch * size_, kBlock, [&](int64_t begin, int64_t end) {
      Activate(function_, end - begin, inputs[0] + begin, output + begin);
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    if (input_gradients[0] == nullptr) return;
    const float* value = GradientNeedsInput(function_) ? inputs[0] : output;
    pass.compute->ParallelRanges(pass.batch * size_, kBlock, [&](int64_t begin, int64_t end) {
      ActivationGradient(function_, end - begin, value + begin, output_gradient + begin, input_gradients[0] + begin);
    });
  }

  bool is_view() const override { return function_.kind == config::v1::NONE; }
  bool gradient_in_place() const override { return true; }

 private:
  const ActivationFunction function_;
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeActivationLayer(LayerBuilder* builder) {
  const config::v1::Layer::ActivationLayer& config = builder->config().activation();
  RETURN_IF_ERROR(builder->CheckActivation(config.kind()));
  if (config.has_slope() && config.kind() != config::v1::LEAKY_RELU) {
    return builder->Error("slope ", config.slope(), " belongs to LEAKY_RELU, not to ", Activation_Name(config.kind()));
  }
  ActivationFunction function{config.kind()};
  if (config.has_slope()) function.slope = config.slope();
  if (!(function.slope >= 0 && function.slope <= 1)) {
    return builder->Error("slope is ", function.slope, ", but must be in [0, 1]");
  }
  return std::make_unique<ActivationOp>(builder->input_shape(), function);
}

}  // namespace lockstep

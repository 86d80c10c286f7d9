#include "lockstep/worker/nn/layers/dense.h"

#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/compute/activation.h"
#include "lockstep/worker/nn/compute/bias_gradient.h"
#include "lockstep/worker/nn/compute/gemm.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {
namespace {

constexpr int kNoBias = -1;

class DenseOp : public LayerOp {
 public:
  DenseOp(int64_t inputs, Shape output_shape, int kernel, int bias, const ActivationFunction& activation)
      : LayerOp(output_shape),
        inputs_(inputs),
        units_(output_shape.dim(0)),
        kernel_(kernel),
        bias_(bias),
        activation_(activation) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    const float* bias = bias_ == kNoBias ? nullptr : pass.values[bias_];
    const bool keep_sum = pass.training && GradientNeedsInput(activation_);
    float* sum = keep_sum ? sum_.Get(pass.batch * units_) : output;
    ParallelMultiply(pass.compute, RowMajor(inputs[0], pass.batch, inputs_),
                     RowMajor(pass.values[kernel_], inputs_, units_), sum, units_,
                     [&](const Tile& tile) { AddBiasAndActivate(activation_, tile, units_, bias, sum, output); });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    const float* value = GradientNeedsInput(activation_) ? sum_.data() : output;
    bias_gradient_.Compute(pass.compute, activation_, pass.batch, units_, value, output_gradient, output_gradient,
                           bias_ == kNoBias ? nullptr : gradients->Buffer(bias_));
    if (bias_ != kNoBias) gradients->Final(bias_);
    ParallelMultiply(pass.compute, Transposed(inputs[0], inputs_, pass.batch),
                     RowMajor(output_gradient, pass.batch, units_), gradients->Buffer(kernel_), units_);
    gradients->Final(kernel_);
    if (input_gradients[0] == nullptr) return;
    ParallelMultiply(pass.compute, RowMajor(output_gradient, pass.batch, units_),
                     Transposed(pass.values[kernel_], units_, inputs_), input_gradients[0], inputs_);
  }

  int64_t multiply_adds() const override { return inputs_ * units_; }

 private:
  const int64_t inputs_;
  const int64_t units_;
  const int kernel_;
  const int bias_;
  const ActivationFunction activation_;
  // x W + b, kept for activations whose gradient needs it.
  Workspace<float> sum_;
  BiasGradient bias_gradient_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeDense(LayerBuilder* builder) {
  const config::v1::Layer::Dense& config = builder->config().dense();
  const Shape& input = builder->input_shape();
  if (input.rank() > 1) {
    return builder->Error("a dense layer reads one vector an example, not shape ", input.ToString(),
                          "; add a flatten layer before it");
  }
  if (config.units() < 1) return builder->Error("units is ", config.units(), ", but must be at least 1");
  RETURN_IF_ERROR(builder->CheckActivation(config.activation()));
  const int64_t inputs = input.num_elements();
  const int64_t units = config.units();
  ASSIGN_OR_RETURN(Shape output, builder->OutputShape({units}));
  ASSIGN_OR_RETURN(const int kernel, builder->AddVariable("kernel", {inputs, units}, config.kernel_initializer()));
  int bias = kNoBias;
  if (!config.no_bias()) {
    ASSIGN_OR_RETURN(bias, builder->AddVariable("bias", {units}, config.bias_initializer()));
  }
  return std::make_unique<DenseOp>(inputs, std::move(output), kernel, bias, ActivationFunction{config.activation()});
}

}  // namespace lockstep

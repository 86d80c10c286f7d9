#include "lockstep/worker/nn/layers/normalization/batch_norm.h"

#include <cmath>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/nn/batch_norm.h"
#include "lockstep/worker/nn/compute/activation_function.h"
#include "lockstep/worker/nn/compute/column_moments.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {
namespace {

// Number of rows summed together. Changing it changes the low-order bits of the results.
constexpr int64_t kBlockRows = 256;
constexpr int kAbsent = -1;

struct BatchNormOptions {
  int64_t channels = 0;
  float epsilon = 0;
  ActivationFunction activation;
  // Indices of variables and update ops; gamma and beta may be kAbsent.
  int gamma = kAbsent;
  int beta = kAbsent;
  int moving_mean = kAbsent;
  int moving_variance = kAbsent;
  int mean_update = kAbsent;
  int variance_update = kAbsent;
};

class BatchNormOp : public LayerOp {
 public:
  BatchNormOp(Shape shape, const BatchNormOptions& options)
      : LayerOp(shape), options_(options), rows_per_example_(shape.num_elements() / options.channels) {
    for (Workspace<float>* w : {&mean_, &variance_, &inverse_, &scale_, &shift_, &gradient_offset_, &gradient_slope_}) {
      w->Get(options.channels);
    }
  }

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    const int64_t rows = pass.batch * rows_per_example_;
    const float* mean = pass.values[options_.moving_mean];
    const float* variance = pass.values[options_.moving_variance];
    if (pass.training) {
      moments_.Compute(pass.compute, rows, options_.channels, inputs[0], mean_.data(), variance_.data());
      mean = mean_.data();
      variance = variance_.data();
    }
    const float* gamma = options_.gamma == kAbsent ? nullptr : pass.values[options_.gamma];
    const float* beta = options_.beta == kAbsent ? nullptr : pass.values[options_.beta];
    for (int64_t c = 0; c < options_.channels; ++c) {
      inverse_.data()[c] = 1.0f / std::sqrt(variance[c] + options_.epsilon);
      scale_.data()[c] = gamma == nullptr ? inverse_.data()[c] : gamma[c] * inverse_.data()[c];
      shift_.data()[c] = beta == nullptr ? 0.0f : beta[c];
    }
    Normalize(pass.compute, inputs[0], mean, rows, output);
    return absl::OkStatus();
  }

  void ReportUpdates(GradientSink* sink) const override {
    const size_t channels = options_.channels;
    sink->OnUpdate(options_.mean_update, {mean_.data(), channels});
    sink->OnUpdate(options_.variance_update, {variance_.data(), channels});
  }

  // With z = gamma xhat + beta, xhat = (x - mean) inverse and dz = dy f'(z):
  // dbeta = sum dz, dgamma = sum dz xhat, dx = gamma inverse (dz - dbeta / n - xhat dgamma / n).
  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    const int64_t rows = pass.batch * rows_per_example_;
    float* dgamma = options_.gamma == kAbsent ? gradient_slope_.data() : gradients->Buffer(options_.gamma);
    float* dbeta = options_.beta == kAbsent ? gradient_offset_.data() : gradients->Buffer(options_.beta);
    SumGradients(pass.compute, inputs[0], output, rows, output_gradient, dgamma, dbeta);
    const float n = static_cast<float>(rows);
    for (int64_t c = 0; c < options_.channels; ++c) {
      gradient_offset_.data()[c] = scale_.data()[c] * (dbeta[c] / n);
      gradient_slope_.data()[c] = scale_.data()[c] * inverse_.data()[c] * (dgamma[c] / n);
    }
    if (options_.gamma != kAbsent) gradients->Final(options_.gamma);
    if (options_.beta != kAbsent) gradients->Final(options_.beta);
    if (input_gradients[0] != nullptr) {
      InputGradient(pass.compute, inputs[0], rows, output_gradient, input_gradients[0]);
    }
  }

  bool gradient_in_place() const override { return true; }

 private:
  void Normalize(ComputeContext* compute, const float* x, const float* mean, int64_t rows, float* y);
  // Returns true if the activation's derivative is so cheap that both passes of Backward compute dz. Otherwise the
  // first pass stores it.
  bool recomputes() const {
    const config::v1::Activation kind = options_.activation.kind;
    return kind == config::v1::NONE || kind == config::v1::RELU || kind == config::v1::RELU6 ||
           kind == config::v1::LEAKY_RELU;
  }
  // Computes the sums of dz xhat and of dz; unless recomputes(), replaces dy with dz.
  void SumGradients(ComputeContext* compute, const float* x, const float* y, int64_t rows, float* dy, float* dgamma,
                    float* dbeta);
  void InputGradient(ComputeContext* compute, const float* x, int64_t rows, const float* dy, float* dx);
  ChannelNumbers Channels(const float* mean) const { return {mean, scale_.data(), shift_.data()}; }

  const BatchNormOptions options_;
  const int64_t rows_per_example_;
  ColumnMoments moments_;
  // The following have shape [channels] and are from the last pass.
  Workspace<float> mean_;
  Workspace<float> variance_;
  Workspace<float> inverse_;
  Workspace<float> scale_;
  Workspace<float> shift_;
  // dx = scale dz - offset - slope (x - mean)
  Workspace<float> gradient_offset_;
  Workspace<float> gradient_slope_;
  // [blocks, 2, channels]: products, then sums.
  Workspace<float> block_sums_;
};

void BatchNormOp::Normalize(ComputeContext* compute, const float* x, const float* mean, int64_t rows, float* y) {
  const int64_t channels = options_.channels;
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    NormalizeColumns(KernelOf(options_.activation), end - begin, channels, Channels(mean), x + at, y + at);
  });
}

void BatchNormOp::SumGradients(ComputeContext* compute, const float* x, const float* y, int64_t rows, float* dy,
                               float* dgamma, float* dbeta) {
  const int64_t channels = options_.channels;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  float* const sums = block_sums_.Get(blocks * 2 * channels);
  const NormGradientMode mode = recomputes()                              ? NormGradientMode::kFromInput
                                : GradientNeedsInput(options_.activation) ? NormGradientMode::kFromInputAndStore
                                                                          : NormGradientMode::kFromOutputAndStore;
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    float* const block = sums + begin / kBlockRows * 2 * channels;
    SumNormGradients(KernelOf(options_.activation), mode, end - begin, channels, Channels(mean_.data()), x + at, y + at,
                     dy + at, block, block + channels);
  });
  for (int64_t c = 0; c < channels; ++c) {
    double product = 0;
    double sum = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      product += sums[block * 2 * channels + c];
      sum += sums[(block * 2 + 1) * channels + c];
    }
    dgamma[c] = static_cast<float>(product * inverse_.data()[c]);
    dbeta[c] = static_cast<float>(sum);
  }
}

void BatchNormOp::InputGradient(ComputeContext* compute, const float* x, int64_t rows, const float* dy, float* dx) {
  const int64_t channels = options_.channels;
  const ActivationKernel f = recomputes() ? KernelOf(options_.activation) : ActivationKernel();
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    NormInputGradient(f, end - begin, channels, Channels(mean_.data()), gradient_offset_.data(), gradient_slope_.data(),
                      x + at, dy + at, dx + at);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeBatchNorm(LayerBuilder* builder) {
  const config::v1::Layer::BatchNorm& config = builder->config().batch_norm();
  const Shape& input = builder->input_shape();
  if (input.rank() == 0) return builder->Error("batch norm needs an input with channels, not shape []");
  const float decay = config.decay();
  const float epsilon = config.epsilon();
  if (!(decay >= 0 && decay <= 1)) return builder->Error("decay is ", decay, ", but must be in [0, 1]");
  if (config.zero_debias_moving_mean() && decay == 1) {
    return builder->Error("decay is 1, but must be below 1 with zero_debias_moving_mean");
  }
  if (!(epsilon > 0 && epsilon <= 1)) return builder->Error("epsilon is ", epsilon, ", but must be in (0, 1]");
  RETURN_IF_ERROR(builder->CheckActivation(config.activation()));
  BatchNormOptions options;
  options.channels = input.dim(input.rank() - 1);
  options.epsilon = epsilon;
  options.activation.kind = config.activation();
  const int64_t channels = options.channels;
  const v1::Initializer zeros = ConstantInitializer(0);
  const v1::Initializer ones = ConstantInitializer(1);
  if (!config.no_center()) {
    ASSIGN_OR_RETURN(options.beta, builder->AddVariable("beta", {channels}, zeros));
  }
  if (!config.no_scale()) {
    ASSIGN_OR_RETURN(options.gamma, builder->AddVariable("gamma", {channels}, ones));
  }
  ASSIGN_OR_RETURN(options.moving_mean, builder->AddVariable("moving_mean", {channels}, zeros, false));
  ASSIGN_OR_RETURN(options.moving_variance, builder->AddVariable("moving_variance", {channels}, ones, false));
  options.mean_update = builder->AddMovingAverage(options.moving_mean, decay, config.zero_debias_moving_mean());
  options.variance_update = builder->AddMovingAverage(options.moving_variance, decay);
  return std::make_unique<BatchNormOp>(input, options);
}

}  // namespace lockstep

#include "worker/nn/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "worker/nn/activation_simd.h"
#include "worker/nn/columns.h"
#include "worker/nn/workspace.h"

namespace lockstep {
namespace {

constexpr float kDefaultDecay = 0.99f;
constexpr float kDefaultEpsilon = 0.001f;
// Rows whose sums are formed together: few enough to be read twice from the cache.
constexpr int64_t kBlockRows = 256;
constexpr int kAbsent = -1;

// The numbers of a strip's channels, in registers.
template <int V>
struct StripParameters {
  template <typename Strip>
  StripParameters(const Strip& strip, const float* channels) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) vectors[v] = strip.Load(channels, v);
  }
  Float8 operator[](int v) const { return vectors[v]; }
  Float8 vectors[V];
};

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
      ComputeMoments(pass.compute, inputs[0], rows);
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
  // Mean and biased variance of each channel: for each block of rows the sum and then the sum of squared distances
  // from the block's mean; the blocks are merged in order (Chan, Golub and LeVeque 1979).
  void ComputeMoments(ComputeContext* compute, const float* x, int64_t rows);
  void Normalize(ComputeContext* compute, const float* x, const float* mean, int64_t rows, float* y);
  // The derivative of these is so cheap that both passes of Backward compute dz; for the others the first one stores
  // it.
  bool recomputes() const {
    const Activation kind = options_.activation.kind;
    return kind == NONE || kind == RELU || kind == LEAKY_RELU;
  }
  // Forms the sums of dz xhat and of dz; unless recomputes(), replaces dy by dz.
  void SumGradients(ComputeContext* compute, const float* x, const float* y, int64_t rows, float* dy, float* dgamma,
                    float* dbeta);
  template <typename Function>
  void SumGradientsOf(Function function, ComputeContext* compute, const float* x, const float* y, int64_t rows,
                      float* dy);
  void InputGradient(ComputeContext* compute, const float* x, int64_t rows, const float* dy, float* dx);
  template <typename Function>
  void InputGradientOf(Function function, ComputeContext* compute, const float* x, int64_t rows, const float* dy,
                       float* dx);

  const BatchNormOptions options_;
  const int64_t rows_per_example_;
  // [channels]: of the last pass.
  Workspace<float> mean_;
  Workspace<float> variance_;
  Workspace<float> inverse_;
  Workspace<float> scale_;
  Workspace<float> shift_;
  // dx = scale dz - offset - slope (x - mean)
  Workspace<float> gradient_offset_;
  Workspace<float> gradient_slope_;
  // [blocks, 2, channels]
  Workspace<float> block_sums_;
};

void BatchNormOp::ComputeMoments(ComputeContext* compute, const float* x, int64_t rows) {
  const int64_t channels = options_.channels;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  float* sums = block_sums_.Get(blocks * 2 * channels);
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    float* block = sums + begin / kBlockRows * 2 * channels;
    const Float8 count = Set8(static_cast<float>(end - begin));
    ForEachStrip(channels, [&](auto strip) {
      Float8 sum[strip.kVectors] = {};
      for (int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 4
        for (int v = 0; v < strip.kVectors; ++v) sum[v] += strip.Load(x + row * channels, v);
      }
      Float8 squares[strip.kVectors] = {};
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) sum[v] /= count;
      for (int64_t row = begin; row < end; ++row) {
#pragma GCC unroll 4
        for (int v = 0; v < strip.kVectors; ++v) {
          const Float8 distance = strip.Load(x + row * channels, v) - sum[v];
          squares[v] = MultiplyAdd8(distance, distance, squares[v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) {
        strip.Store(block, v, sum[v]);
        strip.Store(block + channels, v, squares[v]);
      }
    });
  });
  for (int64_t c = 0; c < channels; ++c) {
    double count = 0;
    double mean = 0;
    double squares = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const float* s = sums + block * 2 * channels + c;
      const double block_count = static_cast<double>(std::min(kBlockRows, rows - block * kBlockRows));
      const double distance = s[0] - mean;
      const double total = count + block_count;
      mean += distance * (block_count / total);
      squares += s[channels] + distance * distance * (count * block_count / total);
      count = total;
    }
    mean_.data()[c] = static_cast<float>(mean);
    variance_.data()[c] = static_cast<float>(squares / count);
  }
}

void BatchNormOp::Normalize(ComputeContext* compute, const float* x, const float* mean, int64_t rows, float* y) {
  const int64_t channels = options_.channels;
  WithActivation(options_.activation, [&](auto function) {
    compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
      ForEachStrip(channels, [&](auto strip) {
        const StripParameters<strip.kVectors> m(strip, mean);
        const StripParameters<strip.kVectors> scale(strip, scale_.data());
        const StripParameters<strip.kVectors> shift(strip, shift_.data());
        for (int64_t at = begin * channels; at < end * channels; at += channels) {
#pragma GCC unroll 4
          for (int v = 0; v < strip.kVectors; ++v) {
            const Float8 z = MultiplyAdd8(strip.Load(x + at, v) - m[v], scale[v], shift[v]);
            strip.Store(y + at, v, function.Value(z));
          }
        }
      });
    });
  });
}

template <typename Function>
void BatchNormOp::SumGradientsOf(Function function, ComputeContext* compute, const float* x, const float* y,
                                 int64_t rows, float* dy) {
  const int64_t channels = options_.channels;
  const bool from_input = recomputes() || GradientNeedsInput(options_.activation);
  const bool store = !recomputes();
  float* sums = block_sums_.data();
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    float* block = sums + begin / kBlockRows * 2 * channels;
    ForEachStrip(channels, [&](auto strip) {
      const StripParameters<strip.kVectors> mean(strip, mean_.data());
      const StripParameters<strip.kVectors> scale(strip, scale_.data());
      const StripParameters<strip.kVectors> shift(strip, shift_.data());
      Float8 sum[strip.kVectors] = {};
      Float8 product[strip.kVectors] = {};
      for (int64_t at = begin * channels; at < end * channels; at += channels) {
#pragma GCC unroll 4
        for (int v = 0; v < strip.kVectors; ++v) {
          const Float8 distance = strip.Load(x + at, v) - mean[v];
          const Float8 value = from_input ? MultiplyAdd8(distance, scale[v], shift[v]) : strip.Load(y + at, v);
          const Float8 dz = function.Gradient(value, strip.Load(dy + at, v));
          if (store) strip.Store(dy + at, v, dz);
          sum[v] += dz;
          product[v] = MultiplyAdd8(dz, distance, product[v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < strip.kVectors; ++v) {
        strip.Store(block, v, product[v]);
        strip.Store(block + channels, v, sum[v]);
      }
    });
  });
}

void BatchNormOp::SumGradients(ComputeContext* compute, const float* x, const float* y, int64_t rows, float* dy,
                               float* dgamma, float* dbeta) {
  const int64_t channels = options_.channels;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  const float* sums = block_sums_.Get(blocks * 2 * channels);
  WithActivation(options_.activation, [&](auto function) { SumGradientsOf(function, compute, x, y, rows, dy); });
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

template <typename Function>
void BatchNormOp::InputGradientOf(Function function, ComputeContext* compute, const float* x, int64_t rows,
                                  const float* dy, float* dx) {
  const int64_t channels = options_.channels;
  compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    ForEachStrip(channels, [&](auto strip) {
      const StripParameters<strip.kVectors> mean(strip, mean_.data());
      const StripParameters<strip.kVectors> scale(strip, scale_.data());
      const StripParameters<strip.kVectors> shift(strip, shift_.data());
      const StripParameters<strip.kVectors> offset(strip, gradient_offset_.data());
      const StripParameters<strip.kVectors> slope(strip, gradient_slope_.data());
      for (int64_t at = begin * channels; at < end * channels; at += channels) {
#pragma GCC unroll 4
        for (int v = 0; v < strip.kVectors; ++v) {
          const Float8 distance = strip.Load(x + at, v) - mean[v];
          const Float8 z = MultiplyAdd8(distance, scale[v], shift[v]);
          const Float8 dz = function.Gradient(z, strip.Load(dy + at, v));
          strip.Store(dx + at, v, scale[v] * dz - MultiplyAdd8(distance, slope[v], offset[v]));
        }
      }
    });
  });
}

void BatchNormOp::InputGradient(ComputeContext* compute, const float* x, int64_t rows, const float* dy, float* dx) {
  if (recomputes()) {
    WithActivation(options_.activation, [&](auto function) { InputGradientOf(function, compute, x, rows, dy, dx); });
  } else {
    InputGradientOf(Identity8(), compute, x, rows, dy, dx);  // SumGradients has replaced dy by dz.
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeBatchNorm(LayerBuilder* builder) {
  const Layer::BatchNorm& config = builder->config().batch_norm();
  const Shape& input = builder->input_shape();
  if (input.rank() == 0) return builder->Error("batch norm needs an input with channels, not shape []");
  const float decay = config.has_decay() ? config.decay() : kDefaultDecay;
  const float epsilon = config.has_epsilon() ? config.epsilon() : kDefaultEpsilon;
  if (!(decay >= 0 && decay <= 1)) return builder->Error("decay is ", decay, ", but must be in [0, 1]");
  if (!(epsilon > 0 && epsilon <= 1)) return builder->Error("epsilon is ", epsilon, ", but must be in (0, 1]");
  RETURN_IF_ERROR(builder->CheckActivation(config.activation()));
  BatchNormOptions options;
  options.channels = input.dim(input.rank() - 1);
  options.epsilon = epsilon;
  options.activation.kind = config.activation();
  const int64_t channels = options.channels;
  const Initializer zeros = ConstantInitializer(0);
  const Initializer ones = ConstantInitializer(1);
  if (!config.no_center()) {
    ASSIGN_OR_RETURN(options.beta, builder->AddVariable("beta", {channels}, zeros, zeros));
  }
  if (!config.no_scale()) {
    ASSIGN_OR_RETURN(options.gamma, builder->AddVariable("gamma", {channels}, ones, ones));
  }
  ASSIGN_OR_RETURN(options.moving_mean, builder->AddVariable("moving_mean", {channels}, zeros, zeros, false));
  ASSIGN_OR_RETURN(options.moving_variance, builder->AddVariable("moving_variance", {channels}, ones, ones, false));
  options.mean_update = builder->AddMovingAverage(options.moving_mean, decay);
  options.variance_update = builder->AddMovingAverage(options.moving_variance, decay);
  return std::make_unique<BatchNormOp>(input, options);
}

}  // namespace lockstep

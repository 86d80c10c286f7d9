#include "lockstep/worker/nn/layers/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/kernels/columns.h"
#include "lockstep/worker/nn/kernels/workspace.h"

namespace lockstep {
namespace {

// Rows whose parts of the sums for gamma and beta are formed together.
constexpr int64_t kBlockRows = 64;

// The sum of f(strip, vector) over a row: four sums, of every fourth vector, then (s0 + s1) + (s2 + s3).
template <typename F>
float SumRow(int64_t size, F f) {
  F32x8 sums[4] = {};
  ForEachStrip(size, [&](auto strip) {
#pragma GCC unroll 4
    for (int v = 0; v < strip.kVectors; ++v) sums[v] += f(strip, v);
  });
  return Sum8((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Zero in the lanes that a strip does not have.
template <int V>
F32x8 Inside(const FullStrip<V>&, F32x8 x) {
  return x;
}
F32x8 Inside(const PartStrip& strip, F32x8 x) {
  const I32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return lane < static_cast<int32_t>(strip.count) ? x : Set8(0);
}

class LayerNormOp : public LayerOp {
 public:
  LayerNormOp(Shape shape, float epsilon, int gamma, int beta)
      : LayerOp(shape),
        columns_(shape.dim(shape.rank() - 1)),
        rows_per_example_(shape.num_elements() / columns_),
        epsilon_(epsilon),
        gamma_(gamma),
        beta_(beta) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    const int64_t rows = pass.batch * rows_per_example_;
    float* means = means_.Get(rows);
    float* inverses = inverses_.Get(rows);
    const float* gamma = pass.values[gamma_];
    const float* beta = pass.values[beta_];
    pass.compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* x = inputs[0] + row * columns_;
        const float mean = SumRow(columns_, [&](auto strip, int v) { return strip.Load(x, v); }) / size();
        const float variance = SumRow(columns_,
                                      [&](auto strip, int v) {
                                        const F32x8 distance = Inside(strip, strip.Load(x, v) - Set8(mean));
                                        return distance * distance;
                                      }) /
                               size();
        means[row] = mean;
        inverses[row] = 1.0f / std::sqrt(variance + epsilon_);
        ForEachStrip(columns_, [&](auto strip) {
          for (int v = 0; v < strip.kVectors; ++v) {
            const F32x8 normal = (strip.Load(x, v) - Set8(mean)) * Set8(inverses[row]);
            strip.Store(output + row * columns_, v, MultiplyAdd8(normal, strip.Load(gamma, v), strip.Load(beta, v)));
          }
        });
      }
    });
    return absl::OkStatus();
  }

  // With xhat = (x - mean) inverse and g = dy gamma, means over the row:
  // dx = inverse (g - mean(g) - xhat mean(g xhat)).
  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    const int64_t rows = pass.batch * rows_per_example_;
    VariableGradients(pass.compute, rows, inputs[0], output_gradient, gradients);
    float* dx = input_gradients[0];
    if (dx == nullptr) return;
    const float* gamma = pass.values[gamma_];
    pass.compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        InputGradient(row, inputs[0] + row * columns_, gamma, output_gradient + row * columns_, dx + row * columns_);
      }
    });
  }

  bool gradient_in_place() const override { return true; }

 private:
  float size() const { return static_cast<float>(columns_); }

  void InputGradient(int64_t row, const float* x, const float* gamma, const float* dy, float* dx) const {
    const F32x8 mean = Set8(means_.data()[row]);
    const F32x8 inverse = Set8(inverses_.data()[row]);
    const float g_mean =
        SumRow(columns_, [&](auto strip, int v) { return strip.Load(dy, v) * strip.Load(gamma, v); }) / size();
    const float gx_mean = SumRow(columns_,
                                 [&](auto strip, int v) {
                                   const F32x8 normal = (strip.Load(x, v) - mean) * inverse;
                                   return strip.Load(dy, v) * strip.Load(gamma, v) * normal;
                                 }) /
                          size();
    ForEachStrip(columns_, [&](auto strip) {
      for (int v = 0; v < strip.kVectors; ++v) {
        const F32x8 normal = (strip.Load(x, v) - mean) * inverse;
        const F32x8 g = strip.Load(dy, v) * strip.Load(gamma, v);
        strip.Store(dx, v, inverse * (g - Set8(g_mean) - normal * Set8(gx_mean)));
      }
    });
  }

  // dgamma = sum over rows of dy xhat, dbeta = sum of dy: blocks of rows, then the blocks in order.
  void VariableGradients(ComputeContext* compute, int64_t rows, const float* x, const float* dy,
                         GradientWriter* gradients) {
    const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    float* partial = partial_sums_.Get(blocks * 2 * columns_);
    compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
      float* block = partial + begin / kBlockRows * 2 * columns_;
      ForEachStrip(columns_, [&](auto strip) {
        for (int v = 0; v < strip.kVectors; ++v) {
          F32x8 product = Set8(0);
          F32x8 sum = Set8(0);
          for (int64_t row = begin; row < end; ++row) {
            const F32x8 gradient = strip.Load(dy + row * columns_, v);
            const F32x8 normal =
                (strip.Load(x + row * columns_, v) - Set8(means_.data()[row])) * Set8(inverses_.data()[row]);
            product = MultiplyAdd8(gradient, normal, product);
            sum += gradient;
          }
          strip.Store(block, v, product);
          strip.Store(block + columns_, v, sum);
        }
      });
    });
    float* dgamma = gradients->Buffer(gamma_);
    float* dbeta = gradients->Buffer(beta_);
    std::copy_n(partial, columns_, dgamma);
    std::copy_n(partial + columns_, columns_, dbeta);
    for (int64_t block = 1; block < blocks; ++block) {
      const auto add = [](F32x8 a, F32x8 b) { return a + b; };
      Transform(columns_, dgamma, partial + block * 2 * columns_, dgamma, add);
      Transform(columns_, dbeta, partial + (block * 2 + 1) * columns_, dbeta, add);
    }
    gradients->Final(gamma_);
    gradients->Final(beta_);
  }

  const int64_t columns_;
  const int64_t rows_per_example_;
  const float epsilon_;
  const int gamma_;
  const int beta_;
  // [rows], of the last batch.
  Workspace<float> means_;
  Workspace<float> inverses_;
  // [blocks, 2, columns]
  Workspace<float> partial_sums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeLayerNorm(LayerBuilder* builder) {
  const config::v1::Layer::LayerNorm& config = builder->config().layer_norm();
  const Shape& input = builder->input_shape();
  if (input.rank() == 0) return builder->Error("layer norm needs an input with a last dimension, not shape []");
  const float epsilon = config.epsilon();
  if (!(epsilon > 0 && epsilon <= 1)) return builder->Error("epsilon is ", epsilon, ", but must be in (0, 1]");
  const int64_t columns = input.dim(input.rank() - 1);
  const v1::Initializer zeros = ConstantInitializer(0);
  const v1::Initializer ones = ConstantInitializer(1);
  ASSIGN_OR_RETURN(const int beta, builder->AddVariable("beta", {columns}, zeros));
  ASSIGN_OR_RETURN(const int gamma, builder->AddVariable("gamma", {columns}, ones));
  return std::make_unique<LayerNormOp>(input, epsilon, gamma, beta);
}

}  // namespace lockstep

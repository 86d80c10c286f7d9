#include "lockstep/worker/nn/layers/normalization/layer_norm.h"

#include <algorithm>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/elementwise.h"
#include "lockstep/kernels/nn/layer_norm.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {
namespace {

// Number of rows in each partial sum for gamma and beta.
constexpr int64_t kBlockRows = 64;

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
      const int64_t at = begin * columns_;
      NormalizeRows(end - begin, columns_, epsilon_, gamma, beta, inputs[0] + at, means + begin, inverses + begin,
                    output + at);
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    const int64_t rows = pass.batch * rows_per_example_;
    VariableGradients(pass.compute, rows, inputs[0], output_gradient, gradients);
    float* dx = input_gradients[0];
    if (dx == nullptr) return;
    const float* gamma = pass.values[gamma_];
    pass.compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
      const int64_t at = begin * columns_;
      NormalizeRowsGradient(end - begin, columns_, gamma, Moments(begin), inputs[0] + at, output_gradient + at,
                            dx + at);
    });
  }

  bool gradient_in_place() const override { return true; }

 private:
  RowMoments Moments(int64_t row) const { return {means_.data() + row, inverses_.data() + row}; }

  // Computes dgamma, the sum over the rows of dy xhat, and dbeta, the sum of dy. Sums are computed first within blocks
  // of rows, then over the blocks in order.
  void VariableGradients(ComputeContext* compute, int64_t rows, const float* x, const float* dy,
                         GradientWriter* gradients) {
    const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    float* partial = partial_sums_.Get(blocks * 2 * columns_);
    compute->ParallelRanges(rows, kBlockRows, [&](int64_t begin, int64_t end) {
      float* block = partial + begin / kBlockRows * 2 * columns_;
      const int64_t at = begin * columns_;
      SumRowNormGradients(end - begin, columns_, Moments(begin), x + at, dy + at, block, block + columns_);
    });
    float* dgamma = gradients->Buffer(gamma_);
    float* dbeta = gradients->Buffer(beta_);
    std::copy_n(partial, columns_, dgamma);
    std::copy_n(partial + columns_, columns_, dbeta);
    for (int64_t block = 1; block < blocks; ++block) {
      AddElements(columns_, dgamma, partial + block * 2 * columns_, dgamma);
      AddElements(columns_, dbeta, partial + (block * 2 + 1) * columns_, dbeta);
    }
    gradients->Final(gamma_);
    gradients->Final(beta_);
  }

  const int64_t columns_;
  const int64_t rows_per_example_;
  const float epsilon_;
  const int gamma_;
  const int beta_;
  // [rows], from the last batch.
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

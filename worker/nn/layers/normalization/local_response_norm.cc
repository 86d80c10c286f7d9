#include "lockstep/worker/nn/layers/normalization/local_response_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/kernels/nn/local_response.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {
namespace {

constexpr int64_t kBlockRows = 64;

class LocalResponseNormOp : public LayerOp {
 public:
  LocalResponseNormOp(Shape shape, const LocalResponse& function)
      : LayerOp(shape),
        columns_(shape.dim(shape.rank() - 1)),
        rows_per_example_(shape.num_elements() / columns_),
        function_(function) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    float* const scales = scales_.Get(pass.batch * output_shape().num_elements());
    ForEachBlock(pass, [&](int64_t rows, int64_t at) {
      NormalizeLocalResponse(function_, rows, columns_, inputs[0] + at, scales + at, output + at);
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    float* const dx = input_gradients[0];
    if (dx == nullptr) return;
    ForEachBlock(pass, [&](int64_t rows, int64_t at) {
      LocalResponseGradient(function_, rows, columns_, inputs[0] + at, scales_.data() + at, output + at,
                            output_gradient + at, dx + at);
    });
  }

  bool gradient_in_place() const override { return true; }

 private:
  // Calls body(number of rows, offset of the first one).
  template <typename Body>
  void ForEachBlock(const Pass& pass, Body body) {
    pass.compute->ParallelRanges(pass.batch * rows_per_example_, kBlockRows,
                                 [&](int64_t begin, int64_t end) { body(end - begin, begin * columns_); });
  }

  const int64_t columns_;
  const int64_t rows_per_example_;
  const LocalResponse function_;
  // The sums s[i] of the last batch (see kernels/nn/local_response.h).
  Workspace<float> scales_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeLocalResponseNorm(LayerBuilder* builder) {
  const config::v1::Layer::LocalResponseNorm& config = builder->config().lrn();
  const Shape& input = builder->input_shape();
  if (input.rank() == 0) return builder->Error("lrn needs an input with a last dimension, not shape []");
  const LocalResponse f = {config.depth_radius(), config.bias(), config.alpha(), config.beta()};
  if (f.radius < 0 || f.radius > kMaxElements) {
    return builder->Error("depth_radius is ", f.radius, ", but must be at least 0");
  }
  if (!(f.bias > 0) || std::isinf(f.bias)) return builder->Error("bias is ", f.bias, ", but must be above 0");
  if (!(f.alpha >= 0) || std::isinf(f.alpha)) return builder->Error("alpha is ", f.alpha, ", but must not be negative");
  if (!std::isfinite(f.beta)) return builder->Error("beta is ", f.beta, ", but must be finite");
  LocalResponse bounded = f;
  // A larger radius would cover the same neighbors.
  bounded.radius = std::min(f.radius, input.dim(input.rank() - 1));
  return std::make_unique<LocalResponseNormOp>(input, bounded);
}

}  // namespace lockstep

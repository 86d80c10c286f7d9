#include "lockstep/worker/nn/layers/global_average_pool.h"

#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/kernels/columns.h"

namespace lockstep {
namespace {

class GlobalAveragePoolOp : public LayerOp {
 public:
  GlobalAveragePoolOp(Shape output_shape, int64_t rows)
      : LayerOp(output_shape), rows_(rows), columns_(output_shape.dim(0)) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    pass.compute->ParallelFor(pass.batch, [&](int64_t example) {
      const float* x = inputs[0] + example * rows_ * columns_;
      float* y = output + example * columns_;
      ForEachStrip(columns_, [&](auto strip) {
        F32x8 sum[strip.kVectors] = {};
        for (int64_t row = 0; row < rows_; ++row) {
#pragma GCC unroll 4
          for (int v = 0; v < strip.kVectors; ++v) sum[v] += strip.Load(x + row * columns_, v);
        }
#pragma GCC unroll 4
        for (int v = 0; v < strip.kVectors; ++v) strip.Store(y, v, sum[v] / count());
      });
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    if (input_gradients[0] == nullptr) return;
    pass.compute->ParallelFor(pass.batch, [&](int64_t example) {
      const float* dy = output_gradient + example * columns_;
      float* dx = input_gradients[0] + example * rows_ * columns_;
      ForEachStrip(columns_, [&](auto strip) {
#pragma GCC unroll 4
        for (int v = 0; v < strip.kVectors; ++v) {
          const F32x8 part = strip.Load(dy, v) / count();
          for (int64_t row = 0; row < rows_; ++row) strip.Store(dx + row * columns_, v, part);
        }
      });
    });
  }

 private:
  F32x8 count() const { return Set8(static_cast<float>(rows_)); }

  // Rows and columns of one example.
  const int64_t rows_;
  const int64_t columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeGlobalAveragePool(LayerBuilder* builder) {
  const Shape& input = builder->input_shape();
  if (input.rank() < 2) {
    return builder->Error("it averages [length, d] or [height, width, d], not shape ", input.ToString());
  }
  const int64_t columns = input.dim(input.rank() - 1);
  ASSIGN_OR_RETURN(Shape output, builder->OutputShape({columns}));
  return std::make_unique<GlobalAveragePoolOp>(std::move(output), input.num_elements() / columns);
}

}  // namespace lockstep

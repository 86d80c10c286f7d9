#include "lockstep/worker/nn/layers/images/global_average_pool.h"

#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/images/pool.h"

namespace lockstep {
namespace {

class GlobalAveragePoolOp : public LayerOp {
 public:
  GlobalAveragePoolOp(Shape output_shape, int64_t rows)
      : LayerOp(output_shape), rows_(rows), columns_(output_shape.dim(0)) {}

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    pass.compute->ParallelFor(pass.batch, [&](int64_t example) {
      MeanOfRows(rows_, columns_, inputs[0] + example * rows_ * columns_, output + example * columns_);
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    if (input_gradients[0] == nullptr) return;
    pass.compute->ParallelFor(pass.batch, [&](int64_t example) {
      MeanOfRowsGradient(rows_, columns_, output_gradient + example * columns_,
                         input_gradients[0] + example * rows_ * columns_);
    });
  }

 private:
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

#include "lockstep/worker/nn/layers/images/flatten.h"

#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

class FlattenOp : public LayerOp {
 public:
  using LayerOp::LayerOp;

  bool is_view() const override { return true; }
  absl::Status Forward(const Pass&, absl::Span<const float* const>, float*) override { return absl::OkStatus(); }
  void Backward(const Pass&, absl::Span<const float* const>, const float*, float*, absl::Span<float* const>,
                GradientWriter*) override {}
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeFlatten(LayerBuilder* builder) {
  ASSIGN_OR_RETURN(Shape shape, builder->OutputShape({builder->input_shape().num_elements()}));
  return std::make_unique<FlattenOp>(std::move(shape));
}

}  // namespace lockstep

#include "lockstep/worker/nn/layers/reshape.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

class ReshapeOp : public LayerOp {
 public:
  using LayerOp::LayerOp;

  bool is_view() const override { return true; }
  absl::Status Forward(const Pass&, absl::Span<const float* const>, float*) override { return absl::OkStatus(); }
  void Backward(const Pass&, absl::Span<const float* const>, const float*, float*, absl::Span<float* const>,
                GradientWriter*) override {}
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeReshape(LayerBuilder* builder) {
  const auto& config = builder->config().reshape().shape();
  std::vector<int64_t> dims(config.begin(), config.end());
  const auto rest = std::find(dims.begin(), dims.end(), -1);
  if (rest != dims.end()) *rest = 1;
  ASSIGN_OR_RETURN(Shape shape, builder->OutputShape(dims));
  const int64_t elements = builder->input_shape().num_elements();
  if (rest != dims.end() && elements % shape.num_elements() == 0) {
    *rest = elements / shape.num_elements();
    ASSIGN_OR_RETURN(shape, builder->OutputShape(dims));
  }
  if (shape.num_elements() != elements) {
    return builder->Error("the input ", builder->input_shape().ToString(), " has ", elements,
                          " elements, which do not make the shape [", absl::StrJoin(config, ","), "]");
  }
  return std::make_unique<ReshapeOp>(std::move(shape));
}

absl::StatusOr<std::unique_ptr<LayerOp>> MakeFlatten(LayerBuilder* builder) {
  ASSIGN_OR_RETURN(Shape shape, builder->OutputShape({builder->input_shape().num_elements()}));
  return std::make_unique<ReshapeOp>(std::move(shape));
}

}  // namespace lockstep

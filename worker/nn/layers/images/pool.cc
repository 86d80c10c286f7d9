#include "lockstep/worker/nn/layers/images/pool.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/kernels/images/pool.h"
#include "lockstep/worker/nn/compute/workspace.h"
#include "lockstep/worker/nn/layers/images/window.h"

namespace lockstep {
namespace {

// The base of both kinds of pooling.
class PoolOp : public LayerOp {
 public:
  PoolOp(Shape output_shape, const WindowGeometry& geometry) : LayerOp(std::move(output_shape)), geometry_(geometry) {}

 protected:
  const WindowGeometry& geometry() const { return geometry_; }
  int64_t input_size() const { return geometry_.y.input * geometry_.x.input * geometry_.channels; }
  int64_t output_size() const { return geometry_.y.output * geometry_.x.output * geometry_.channels; }

 private:
  const WindowGeometry geometry_;
};

class MaxPoolOp : public PoolOp {
 public:
  using PoolOp::PoolOp;

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    int32_t* winners = pass.training ? winners_.Get(pass.batch * output_size()) : nullptr;
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      const int64_t at = image * output_size();
      MaxPoolImage(geometry(), inputs[0] + image * input_size(), winners == nullptr ? nullptr : winners + at,
                   output + at);
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    if (input_gradients[0] == nullptr) return;
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      const int64_t at = image * output_size();
      MaxPoolGradient(geometry(), winners_.data() + at, output_gradient + at,
                      input_gradients[0] + image * input_size());
    });
  }

 private:
  // For each output, the index of the maximum within its window.
  Workspace<int32_t> winners_;
};

class AveragePoolOp : public PoolOp {
 public:
  using PoolOp::PoolOp;

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      AveragePoolImage(geometry(), inputs[0] + image * input_size(), output + image * output_size());
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    if (input_gradients[0] == nullptr) return;
    pass.compute->ParallelFor(pass.batch, [&](int64_t image) {
      AveragePoolGradient(geometry(), output_gradient + image * output_size(),
                          input_gradients[0] + image * input_size());
    });
  }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<LayerOp>> MakePool(LayerBuilder* builder, const config::v1::Layer::Pool& config) {
  ASSIGN_OR_RETURN(const WindowGeometry geometry,
                   MakeWindowGeometry(*builder, config.window(), config.strides(), 0, config.padding()));
  ASSIGN_OR_RETURN(Shape output, builder->OutputShape({geometry.y.output, geometry.x.output, geometry.channels}));
  return std::make_unique<Op>(std::move(output), geometry);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeMaxPool(LayerBuilder* builder) {
  return MakePool<MaxPoolOp>(builder, builder->config().max_pool());
}

absl::StatusOr<std::unique_ptr<LayerOp>> MakeAveragePool(LayerBuilder* builder) {
  return MakePool<AveragePoolOp>(builder, builder->config().average_pool());
}

}  // namespace lockstep

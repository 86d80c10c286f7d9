#include "lockstep/worker/nn/layers/add.h"

#include <algorithm>

#include "lockstep/kernels/elementwise.h"

namespace lockstep {
namespace {

// Elements computed together.
constexpr int64_t kBlock = 16384;

class AddOp : public LayerOp {
 public:
  using LayerOp::LayerOp;

  absl::Status Forward(const Pass& pass, absl::Span<const float* const> inputs, float* output) override {
    pass.compute->ParallelRanges(Size(pass), kBlock, [&](int64_t begin, int64_t end) {
      const float* sum = inputs[0];
      for (size_t i = 1; i < inputs.size(); ++i) {
        AddElements(end - begin, sum + begin, inputs[i] + begin, output + begin);
        sum = output;
      }
    });
    return absl::OkStatus();
  }

  void Backward(const Pass& pass, absl::Span<const float* const> inputs, const float* output, float* output_gradient,
                absl::Span<float* const> input_gradients, GradientWriter* gradients) override {
    pass.compute->ParallelRanges(Size(pass), kBlock, [&](int64_t begin, int64_t end) {
      for (float* gradient : input_gradients) {
        if (gradient != nullptr && gradient != output_gradient)
          std::copy(output_gradient + begin, output_gradient + end, gradient + begin);
      }
    });
  }

  bool gradient_in_place() const override { return true; }

 private:
  int64_t Size(const Pass& pass) const { return pass.batch * output_shape().num_elements(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerOp>> MakeAdd(LayerBuilder* builder) {
  const absl::Span<const Shape> shapes = builder->input_shapes();
  if (shapes.size() < 2) return builder->Error("it adds 2 or more inputs, but has ", shapes.size());
  for (size_t i = 1; i < shapes.size(); ++i) {
    if (shapes[i] != shapes[0]) {
      return builder->Error("its inputs '", builder->config().input(0), "' and '", builder->config().input(i),
                            "' have shapes ", shapes[0].ToString(), " and ", shapes[i].ToString());
    }
  }
  return std::make_unique<AddOp>(shapes[0]);
}

}  // namespace lockstep

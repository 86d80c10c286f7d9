// Gradient descent, TensorFlow's ApplyGradientDescent (training_ops.cc, GradientDescentOptimizer):
//   value -= g * rate
// With weight_decay, as in torch.optim.SGD (torch/optim/sgd.py), g + value * weight_decay replaces g.
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(float weight_decay) : weight_decay_(weight_decay) {}

  absl::Span<const State> state() const override { return {}; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(SgdRule{rate_, weight_decay_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const float weight_decay_;
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateSgd(const config::v1::OptimizerConfig::Sgd& config) {
  return std::make_unique<Sgd>(config.weight_decay());
}

}  // namespace lockstep

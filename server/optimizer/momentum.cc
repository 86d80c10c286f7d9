// Momentum, TensorFlow's ApplyMomentum (training_ops.cc, MomentumOptimizer):
//   a = a * momentum + g
//   value -= a * rate                              plain
//   value -= g * rate + a * momentum * rate        Nesterov
// The accumulator starts at 0 and is the slot "Momentum".
//
// As in torch.optim.SGD (torch/optim/sgd.py), with weight_decay, g + value * weight_decay replaces g, and with
// dampening
//   a = a * momentum + g * (1 - dampening)         except for the first update, which adds g unchanged
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Momentum : public Optimizer {
 public:
  explicit Momentum(const config::v1::OptimizerConfig::Momentum& config)
      : momentum_(config.momentum()),
        nesterov_(config.nesterov()),
        weight_decay_(config.weight_decay()),
        dampening_(config.dampening()) {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }
  void SetGlobalStep(int64_t step) override { share_ = step == 1 ? 1.0f : 1.0f - dampening_; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(MomentumRule{rate_, momentum_, nesterov_, weight_decay_, share_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const float momentum_;
  const bool nesterov_;
  const float weight_decay_;
  const float dampening_;
  const std::vector<State> state_ = {{"Momentum", 0.0f}};
  float rate_ = 0;
  float share_ = 1;  // of a gradient in the accumulator
};

}  // namespace

std::unique_ptr<Optimizer> CreateMomentum(const config::v1::OptimizerConfig::Momentum& config) {
  return std::make_unique<Momentum>(config);
}

}  // namespace lockstep

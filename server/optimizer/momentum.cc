// Momentum, TensorFlow's ApplyMomentum (training_ops.cc, MomentumOptimizer):
//   a = a * momentum + g
//   value -= a * rate                              plain
//   value -= g * rate + a * momentum * rate        Nesterov
// The accumulator starts at 0 and is the slot "Momentum".
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Momentum : public Optimizer {
 public:
  Momentum(float momentum, bool nesterov) : momentum_(momentum), nesterov_(nesterov) {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(MomentumRule{rate_, momentum_, nesterov_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const float momentum_;
  const bool nesterov_;
  const std::vector<State> state_ = {{"Momentum", 0.0f}};
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateMomentum(const config::v1::OptimizerConfig::Momentum& config) {
  const float momentum = config.momentum();
  return std::make_unique<Momentum>(momentum, config.nesterov());
}

}  // namespace lockstep

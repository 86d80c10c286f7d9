// Lion (Chen et al. 2023, algorithm 2; keras.optimizers.Lion):
//   value -= value * weight_decay * rate
//   value -= sign(m * beta1 + g * (1 - beta1)) * rate
//   m = m * beta2 + g * (1 - beta2)
// The slot "Lion" (m) starts at 0.
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Lion : public Optimizer {
 public:
  // `config` must be complete.
  explicit Lion(const config::v1::OptimizerConfig::Lion& config) : config_(config) {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(LionRule{rate_, config_.beta1(), config_.beta2(), config_.weight_decay()},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const config::v1::OptimizerConfig::Lion config_;
  const std::vector<State> state_ = {{"Lion", 0.0f}};
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateLion(const config::v1::OptimizerConfig::Lion& config) {
  return std::make_unique<Lion>(config);
}

}  // namespace lockstep

// Moving averages of trained variables, added to any rule. TensorFlow's assign_moving_average
// (python/training/moving_averages.py, ExponentialMovingAverage):
//   average -= (average - value) * (1 - d)
//   d = decay, or with num_updates min(decay, (1 + n) / (10 + n))
// `value` is the value after the update, and n is the global step after it. The average starts at the variable's first
// value and is the last slot, "ExponentialMovingAverage". A variable that optimizer.moving_average.variables does not
// select lacks this slot.
#include <algorithm>
#include <utility>

#include "lockstep/kernels/update_rules.h"
#include "lockstep/server/optimizer/rules.h"

namespace lockstep {
namespace {

class MovingAverage : public Optimizer {
 public:
  MovingAverage(const config::v1::OptimizerConfig::MovingAverage& config, std::unique_ptr<Optimizer> rule)
      : config_(config), rule_(std::move(rule)), state_(rule_->state().begin(), rule_->state().end()) {
    state_.push_back({"ExponentialMovingAverage", 0.0f, /*starts_at_value=*/true});
  }

  absl::Span<const State> state() const override { return state_; }

  void BeginStep(float learning_rate) override { rule_->BeginStep(learning_rate); }
  void SetGlobalStep(int64_t step) override {
    float decay = config_.decay();
    if (config_.num_updates()) {
      const auto n = static_cast<float>(step);
      decay = std::min(decay, (1.0f + n) / (10.0f + n));
    }
    share_ = 1.0f - decay;
    rule_->SetGlobalStep(step);
  }
  void EndStep() override { rule_->EndStep(); }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    const size_t own = state_.size() - 1;
    rule_->Apply(n, gradient, gradient_divisor, value_in, value_out, state_in.first(own), state_out.first(own));
    if (state_in.size() > own) UpdateMovingAverage(n, share_, value_out, state_in[own], state_out[own]);
  }

  std::vector<OptimizerScalar> scalars() const override { return rule_->scalars(); }
  void RestoreScalars(absl::Span<const OptimizerScalar> scalars) override { rule_->RestoreScalars(scalars); }

 private:
  const config::v1::OptimizerConfig::MovingAverage config_;
  const std::unique_ptr<Optimizer> rule_;
  std::vector<State> state_;
  float share_ = 0;  // 1 - d of the update
};

}  // namespace

std::unique_ptr<Optimizer> CreateMovingAverage(const config::v1::OptimizerConfig::MovingAverage& config,
                                               std::unique_ptr<Optimizer> rule) {
  return std::make_unique<MovingAverage>(config, std::move(rule));
}

}  // namespace lockstep

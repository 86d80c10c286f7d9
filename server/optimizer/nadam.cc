// NAdam, torch.optim.NAdam (torch/optim/nadam.py; Dozat 2016), where t is the number of the update, starting at 1:
//   mu(t) = beta1 * (1 - 0.96 ^ (t * momentum_decay) / 2)
//   product = mu(1) * ... * mu(t)
//   m += (g - m) * (1 - beta1)
//   v += (g * g - v) * (1 - beta2)
//   denominator = sqrt(v / (1 - beta2 ^ t)) + epsilon
//   value -= g * rate * (1 - mu(t)) / (1 - product) / denominator
//   value -= m * rate * mu(t + 1) / (1 - product * mu(t + 1)) / denominator
// Both changes are computed as one, with the numerator and the denominator multiplied by sqrt(1 - beta2 ^ t).
// With weight_decay, g + value * weight_decay replaces g. If it is decoupled,
//   value -= value * weight_decay * rate
// precedes the lines above instead.
//
// The slots "Nadam" (m) and "Nadam_1" (v) start at 0. The powers of the next update, beta2 ^ t and 0.96 ^ (t *
// momentum_decay), and the product before it are kept with the variables.
#include <cmath>

#include "lockstep/kernels/portable_math.h"
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Nadam : public Optimizer {
 public:
  // `config` must be complete.
  explicit Nadam(const config::v1::OptimizerConfig::Nadam& config)
      : config_(config),
        decay_(static_cast<float>(portable::Pow(0.96, static_cast<double>(config.momentum_decay())))),
        beta2_power_(config.beta2()),
        decay_power_(decay_) {}

  absl::Span<const State> state() const override { return state_; }

  void BeginStep(float learning_rate) override {
    const float correction = std::sqrt(1.0f - beta2_power_);
    const float mu = Mu(decay_power_);
    const float next_mu = Mu(decay_power_ * decay_);
    const float product = mu_product_ * mu;
    rule_.gradient_rate = learning_rate * correction * (1.0f - mu) / (1.0f - product);
    rule_.average_rate = learning_rate * correction * next_mu / (1.0f - product * next_mu);
    rule_.beta1 = config_.beta1();
    rule_.beta2 = config_.beta2();
    rule_.epsilon = config_.epsilon() * correction;
    rule_.weight_decay = config_.weight_decay();
    rule_.decouples = config_.decoupled_weight_decay();
    rule_.rate = learning_rate;
  }

  void EndStep() override {
    mu_product_ *= Mu(decay_power_);
    beta2_power_ *= config_.beta2();
    decay_power_ *= decay_;
  }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(rule_, MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

  std::vector<OptimizerScalar> scalars() const override {
    return {{"beta2_power", beta2_power_}, {"mu_decay_power", decay_power_}, {"mu_product", mu_product_}};
  }

  void RestoreScalars(absl::Span<const OptimizerScalar> scalars) override {
    for (const OptimizerScalar& scalar : scalars) {
      if (scalar.name == "beta2_power") beta2_power_ = scalar.value;
      if (scalar.name == "mu_decay_power") decay_power_ = scalar.value;
      if (scalar.name == "mu_product") mu_product_ = scalar.value;
    }
  }

 private:
  float Mu(float decay_power) const { return config_.beta1() * (1.0f - 0.5f * decay_power); }

  const config::v1::OptimizerConfig::Nadam config_;
  const float decay_;  // 0.96 ^ momentum_decay
  const std::vector<State> state_ = {{"Nadam", 0.0f}, {"Nadam_1", 0.0f}};
  float beta2_power_;
  float decay_power_;
  float mu_product_ = 1;
  NadamRule rule_ = {};  // of the step
};

}  // namespace

std::unique_ptr<Optimizer> CreateNadam(const config::v1::OptimizerConfig::Nadam& config) {
  return std::make_unique<Nadam>(config);
}

}  // namespace lockstep

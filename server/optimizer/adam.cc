// Adam, TensorFlow's ApplyAdam (training_ops.cc, AdamOptimizer; Kingma and Ba 2014, the form before section 2.1):
//   alpha = rate * sqrt(1 - beta2_power) / (1 - beta1_power)
//   m += (g - m) * (1 - beta1)
//   v += (g * g - v) * (1 - beta2)
//   value -= m * alpha / (sqrt(v) + epsilon)
// The slots "Adam" (m) and "Adam_1" (v) start at 0. The powers start at beta1 and beta2, are multiplied by them after
// each step, in float, and are kept with the variables.
//
// AdamW (weight_decay > 0; Loshchilov and Hutter 2017, in the order of Keras's AdamW and torch.optim.AdamW) first
// computes
//   value -= value * weight_decay * rate
//
// With epsilon_on_corrected (torch/optim/adam.py, the algorithm of Kingma and Ba), the divisor is sqrt(v / (1 -
// beta2_power)) + epsilon and the factor is rate / (1 - beta1_power). This is computed as above, with epsilon * sqrt(1
// - beta2_power) in place of epsilon.
//
// With amsgrad (Reddi et al. 2018, as in torch.optim.Adam), the slot "Adam_2", which starts at 0, keeps the largest v
// so far and replaces v in the last line.
#include <cmath>

#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Adam : public Optimizer {
 public:
  // `config` must be complete.
  explicit Adam(const config::v1::OptimizerConfig::Adam& config)
      : config_(config), beta1_power_(config.beta1()), beta2_power_(config.beta2()) {
    if (config.amsgrad()) state_.push_back({"Adam_2", 0.0f});
  }

  absl::Span<const State> state() const override { return state_; }

  void BeginStep(float learning_rate) override {
    const float correction = std::sqrt(1.0f - beta2_power_);
    rule_.rate = learning_rate;
    rule_.alpha = learning_rate * correction / (1.0f - beta1_power_);
    rule_.beta1 = config_.beta1();
    rule_.beta2 = config_.beta2();
    rule_.epsilon = config_.epsilon_on_corrected() ? config_.epsilon() * correction : config_.epsilon();
    rule_.weight_decay = config_.weight_decay();
    rule_.amsgrad = config_.amsgrad();
  }

  void EndStep() override {
    beta1_power_ *= config_.beta1();
    beta2_power_ *= config_.beta2();
  }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(rule_, MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

  std::vector<OptimizerScalar> scalars() const override {
    return {{"beta1_power", beta1_power_}, {"beta2_power", beta2_power_}};
  }

  void RestoreScalars(absl::Span<const OptimizerScalar> scalars) override {
    for (const OptimizerScalar& scalar : scalars) {
      if (scalar.name == "beta1_power") beta1_power_ = scalar.value;
      if (scalar.name == "beta2_power") beta2_power_ = scalar.value;
    }
  }

 private:
  const config::v1::OptimizerConfig::Adam config_;
  std::vector<State> state_ = {{"Adam", 0.0f}, {"Adam_1", 0.0f}};  // constant after construction
  float beta1_power_;
  float beta2_power_;
  AdamRule rule_ = {};  // of the step
};

}  // namespace

std::unique_ptr<Optimizer> CreateAdam(const config::v1::OptimizerConfig::Adam& config) {
  return std::make_unique<Adam>(config);
}

}  // namespace lockstep

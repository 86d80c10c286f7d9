// Adam, TensorFlow's ApplyAdam (training_ops.cc, AdamOptimizer; Kingma and Ba 2014, the form before section 2.1):
//   alpha = rate * sqrt(1 - beta2_power) / (1 - beta1_power)
//   m += (g - m) * (1 - beta1)
//   v += (g * g - v) * (1 - beta2)
//   value -= m * alpha / (sqrt(v) + epsilon)
// The slots "Adam" (m) and "Adam_1" (v) start at 0. The powers start at beta1 and beta2, are multiplied by them
// after each step, in float, and are kept with the variables.
//
// AdamW (weight_decay > 0; Loshchilov and Hutter 2017, in the order of Keras's AdamW): before the lines above
//   value -= value * weight_decay * rate
#include <cmath>

#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Adam : public Optimizer {
 public:
  Adam(float beta1, float beta2, float epsilon, float weight_decay)
      : beta1_(beta1),
        beta2_(beta2),
        epsilon_(epsilon),
        weight_decay_(weight_decay),
        beta1_power_(beta1),
        beta2_power_(beta2) {}

  absl::Span<const State> state() const override { return state_; }

  void BeginStep(float learning_rate) override {
    rate_ = learning_rate;
    alpha_ = learning_rate * std::sqrt(1.0f - beta2_power_) / (1.0f - beta1_power_);
  }

  void EndStep() override {
    beta1_power_ *= beta1_;
    beta2_power_ *= beta2_;
  }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(AdamRule{alpha_, beta1_, beta2_, epsilon_, weight_decay_, rate_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
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
  const float beta1_;
  const float beta2_;
  const float epsilon_;
  const float weight_decay_;
  const std::vector<State> state_ = {{"Adam", 0.0f}, {"Adam_1", 0.0f}};
  float beta1_power_;
  float beta2_power_;
  float rate_ = 0;
  float alpha_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateAdam(const config::v1::OptimizerConfig::Adam& config) {
  const float beta1 = config.beta1();
  const float beta2 = config.beta2();
  const float epsilon = config.epsilon();
  return std::make_unique<Adam>(beta1, beta2, epsilon, config.weight_decay());
}

}  // namespace lockstep

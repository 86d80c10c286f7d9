// Adagrad with dual averaging, TensorFlow's ApplyAdagradDA (training_ops.cc, AdagradDAOptimizer; Duchi et al. 2011),
// where T is the global step after the update:
//   s += g
//   a += g * g
//   value = -sign(s) * rate * max(|s| - l1 * T, 0) / (l2 * T * rate + sqrt(a))
// The slots are "AdagradDA" (s, starts at 0) and "AdagradDA_1" (a). The first update replaces the initial value; at
// rate 0, every value becomes 0.
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class AdagradDa : public Optimizer {
 public:
  AdagradDa(float initial_accumulator, float l1, float l2)
      : l1_(l1), l2_(l2), state_{{"AdagradDA", 0.0f}, {"AdagradDA_1", initial_accumulator}} {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }
  void SetGlobalStep(int64_t step) override { step_ = static_cast<float>(step); }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(AdagradDaRule{rate_, l1_ * step_, l2_ * (step_ * rate_)},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const float l1_;
  const float l2_;
  const std::vector<State> state_;
  float rate_ = 0;
  float step_ = 1;
};

}  // namespace

std::unique_ptr<Optimizer> CreateAdagradDa(const config::v1::OptimizerConfig::AdagradDa& config) {
  const float initial_accumulator = config.initial_accumulator();
  return std::make_unique<AdagradDa>(initial_accumulator, config.l1(), config.l2());
}

}  // namespace lockstep

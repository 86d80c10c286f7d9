// Adagrad with proximal regularization, TensorFlow's ApplyProximalAdagrad (training_ops.cc, ProximalAdagradOptimizer;
// Duchi and Singer 2009):
//   a += g * g
//   r = rate / sqrt(a)
//   moved = value - g * r
//   value = sign(moved) * max(|moved| - l1 * r, 0) / (1 + l2 * r)
// The accumulator is the slot "ProximalAdagrad". Roots and divisions are rounded as in adagrad.cc.
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class ProximalAdagrad : public Optimizer {
 public:
  ProximalAdagrad(float initial_accumulator, float l1, float l2)
      : l1_(l1), l2_(l2), state_{{"ProximalAdagrad", initial_accumulator}} {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(ProximalAdagradRule{rate_, l1_, l2_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const float l1_;
  const float l2_;
  const std::vector<State> state_;
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateProximalAdagrad(const config::v1::OptimizerConfig::ProximalAdagrad& config) {
  const float initial_accumulator = config.initial_accumulator();
  return std::make_unique<ProximalAdagrad>(initial_accumulator, config.l1(), config.l2());
}

}  // namespace lockstep

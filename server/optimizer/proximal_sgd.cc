// Gradient descent with proximal regularization, TensorFlow's ApplyProximalGradientDescent (training_ops.cc,
// ProximalGradientDescentOptimizer; Duchi and Singer 2009):
//   moved = value - g * rate
//   value = sign(moved) * max(|moved| - l1 * rate, 0) / (1 + l2 * rate)
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class ProximalSgd : public Optimizer {
 public:
  ProximalSgd(float l1, float l2) : l1_(l1), l2_(l2) {}

  absl::Span<const State> state() const override { return {}; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(ProximalSgdRule{rate_, l1_, l2_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const float l1_;
  const float l2_;
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateProximalSgd(const config::v1::OptimizerConfig::ProximalSgd& config) {
  return std::make_unique<ProximalSgd>(config.l1(), config.l2());
}

}  // namespace lockstep

// Adadelta, TensorFlow's ApplyAdadelta (training_ops.cc, AdadeltaOptimizer; Zeiler 2012):
//   a = a * rho + g * g * (1 - rho)
//   update = sqrt(u + epsilon) / sqrt(a + epsilon) * g
//   value -= update * rate
//   u = u * rho + update * update * (1 - rho)
// The slots "Adadelta" (a) and "Adadelta_1" (u) start at 0. TensorFlow multiplies by an approximate reciprocal root,
// whose last bit depends on the processor; here the root and the division are correctly rounded.
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Adadelta : public Optimizer {
 public:
  Adadelta(float rho, float epsilon) : rho_(rho), epsilon_(epsilon) {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(AdadeltaRule{rate_, rho_, epsilon_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const float rho_;
  const float epsilon_;
  const std::vector<State> state_ = {{"Adadelta", 0.0f}, {"Adadelta_1", 0.0f}};
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateAdadelta(const config::v1::OptimizerConfig::Adadelta& config) {
  const float rho = config.rho();
  const float epsilon = config.epsilon();
  return std::make_unique<Adadelta>(rho, epsilon);
}

}  // namespace lockstep

// Adagrad, TensorFlow's ApplyAdagrad (training_ops.cc, AdagradOptimizer; Duchi et al. 2011):
//   a += g * g
//   value -= g * rate / sqrt(a)
// The accumulator is the slot "Adagrad". TensorFlow multiplies by an approximate reciprocal root, whose last bit
// depends on the processor; here the root and the division are correctly rounded.
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(float initial_accumulator) : state_{{"Adagrad", initial_accumulator}} {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(AdagradRule{rate_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const std::vector<State> state_;
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateAdagrad(const config::v1::OptimizerConfig::Adagrad& config) {
  const float initial_accumulator = config.initial_accumulator();
  return std::make_unique<Adagrad>(initial_accumulator);
}

}  // namespace lockstep

// Adagrad, TensorFlow's ApplyAdagrad (training_ops.cc, AdagradOptimizer; Duchi et al. 2011):
//   a += g * g
//   value -= g * rate / sqrt(a)
// The accumulator is the slot "Adagrad". TensorFlow multiplies by an approximate reciprocal root, whose last bit
// depends on the processor; here the root and the division are rounded correctly.
#include <cmath>

#include "server/optimizer/elementwise.h"
#include "server/optimizer/rules.h"

namespace lockstep {
namespace {

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(float initial_accumulator) : slots_{{"Adagrad", initial_accumulator}} {}

  absl::Span<const Slot> slots() const override { return slots_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> slots_in, absl::Span<float* const> slots_out) const override {
    ForEachElement<1>(n, gradient, gradient_divisor, value_in, value_out, slots_in, slots_out,
                      [rate = rate_](float g, float& value, float& accumulator) {
                        accumulator += g * g;
                        value -= g * rate / std::sqrt(accumulator);
                      });
  }

 private:
  const std::vector<Slot> slots_;
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateAdagrad(const OptimizerConfig::Adagrad& config) {
  const float initial_accumulator = config.has_initial_accumulator() ? config.initial_accumulator() : 0.1f;
  return std::make_unique<Adagrad>(initial_accumulator);
}

}  // namespace lockstep

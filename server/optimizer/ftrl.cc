// FTRL-Proximal, TensorFlow's ApplyFtrl (training_ops.cc, FtrlOptimizer; McMahan et al. 2013), p =
// -learning_rate_power:
//   a' = a + g * g
//   linear += g - (a'^p - a^p) / rate * value
//   value = (sign(linear) * l1 - linear) / (a'^p / rate + 2 * l2)   when |linear| > l1, else 0
//   a = a'
// The slots are "Ftrl" (a) and "Ftrl_1" (linear, starts at 0). p = 1/2 is computed as a square root.
// The limit of the formula for rate -> 0 is no change; TensorFlow divides by zero there.
#include <cmath>
#include <cstring>

#include "lockstep/server/optimizer/elementwise.h"
#include "lockstep/server/optimizer/rules.h"

namespace lockstep {
namespace {

struct SquareRoot {
  float operator()(float x) const { return std::sqrt(x); }
};

struct Power {
  float p;
  float operator()(float x) const { return std::pow(x, p); }
};

template <typename Root>
class Ftrl : public Optimizer {
 public:
  Ftrl(Root root, float initial_accumulator, float l1, float l2)
      : root_(root), l1_(l1), l2_(l2), state_{{"Ftrl", initial_accumulator}, {"Ftrl_1", 0.0f}} {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    if (rate_ == 0) {
      ForEachElement<2>(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out,
                        [](float, float&, float&, float&) {});
      return;
    }
    ForEachElement<2>(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out,
                      [root = root_, rate = rate_, l1 = l1_, twice_l2 = 2.0f * l2_](float g, float& value,
                                                                                    float& accumulator, float& linear) {
                        const float new_accumulator = accumulator + g * g;
                        const float new_root = root(new_accumulator);
                        linear += g - (new_root - root(accumulator)) / rate * value;
                        const float numerator = std::copysign(l1, linear) - linear;
                        const float quotient = numerator / (new_root / rate + twice_l2);
                        value = std::abs(linear) > l1 ? quotient : 0.0f;
                        accumulator = new_accumulator;
                      });
  }

 private:
  const Root root_;
  const float l1_;
  const float l2_;
  const std::vector<State> state_;
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateFtrl(const config::v1::OptimizerConfig::Ftrl& config) {
  const float power = config.learning_rate_power();
  const float initial_accumulator = config.initial_accumulator();
  if (power == -0.5f) {
    return std::make_unique<Ftrl<SquareRoot>>(SquareRoot(), initial_accumulator, config.l1(), config.l2());
  }
  return std::make_unique<Ftrl<Power>>(Power{-power}, initial_accumulator, config.l1(), config.l2());
}

}  // namespace lockstep

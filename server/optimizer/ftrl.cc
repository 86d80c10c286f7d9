// FTRL-Proximal, TensorFlow's ApplyFtrl (training_ops.cc, FtrlOptimizer; McMahan et al. 2013), where p =
// -learning_rate_power:
//   a' = a + g * g
//   linear += g - (a'^p - a^p) / rate * value
//   value = (sign(linear) * l1 - linear) / (a'^p / rate + 2 * l2)   when |linear| > l1, else 0
//   a = a'
// The slots are "Ftrl" (a) and "Ftrl_1" (linear, starts at 0). p = 1/2 is computed as a square root.
// At rate 0, nothing changes, which is the limit of the formula for rate -> 0. TensorFlow divides by zero there.
#include <cmath>
#include <cstring>

#include "lockstep/kernels/portable_math.h"
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class Ftrl : public Optimizer {
 public:
  // `power` is p.
  Ftrl(float power, float initial_accumulator, float l1, float l2)
      : power_(power), l1_(l1), l2_(l2), state_{{"Ftrl", initial_accumulator}, {"Ftrl_1", 0.0f}} {}

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    const UpdateArrays arrays =
        MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out);
    if (rate_ == 0) {
      Copy(arrays);
    } else if (power_ == 0.5f) {
      Update(FtrlRule{rate_, l1_, l2_}, arrays);
    } else {
      for (int64_t i = 0; i < n; ++i) UpdateElement(arrays, i);
    }
  }

 private:
  static void Copy(const UpdateArrays& arrays) {
    const auto bytes = static_cast<size_t>(arrays.n) * sizeof(float);
    std::memmove(arrays.value_out, arrays.value_in, bytes);
    for (int k = 0; k < 2; ++k) std::memmove(arrays.state_out[k], arrays.state_in[k], bytes);
  }

  void UpdateElement(const UpdateArrays& arrays, int64_t i) const {
    const float g = arrays.gradient[i] / arrays.gradient_divisor;
    const float accumulator = arrays.state_in[0][i];
    const float new_accumulator = accumulator + g * g;
    const float new_root = portable::Pow(new_accumulator, power_);
    const float change = (new_root - portable::Pow(accumulator, power_)) / rate_ * arrays.value_in[i];
    const float linear = arrays.state_in[1][i] + (g - change);
    const float quotient = (std::copysign(l1_, linear) - linear) / (new_root / rate_ + 2.0f * l2_);
    arrays.value_out[i] = std::abs(linear) > l1_ ? quotient : 0.0f;
    arrays.state_out[0][i] = new_accumulator;
    arrays.state_out[1][i] = linear;
  }

  const float power_;
  const float l1_;
  const float l2_;
  const std::vector<State> state_;
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateFtrl(const config::v1::OptimizerConfig::Ftrl& config) {
  const float power = config.learning_rate_power();
  const float initial_accumulator = config.initial_accumulator();
  return std::make_unique<Ftrl>(-power, initial_accumulator, config.l1(), config.l2());
}

}  // namespace lockstep

// RMSProp, TensorFlow's ApplyRMSProp and ApplyCenteredRMSProp (training_ops.cc, RMSPropOptimizer):
//   ms += (g * g - ms) * (1 - decay)
//   mg += (g - mg) * (1 - decay)                                    centered only
//   mom = mom * momentum + g * rate / sqrt(ms + epsilon)            plain
//   mom = mom * momentum + g * rate / sqrt(ms - mg * mg + epsilon)  centered
//   value -= mom
// The first slot is "RMSProp" (ms), which starts at 1. The other slots start at 0: "RMSProp_1" (mg) and "RMSProp_2"
// (mom) if centered, "RMSProp_1" (mom) if plain.
#include "lockstep/server/optimizer/rules.h"
#include "lockstep/server/optimizer/update_arrays.h"

namespace lockstep {
namespace {

class RmsProp : public Optimizer {
 public:
  RmsProp(bool centered, float decay, float momentum, float epsilon)
      : centered_(centered), decay_(decay), momentum_(momentum), epsilon_(epsilon) {
    if (centered) state_.push_back({"RMSProp_2", 0.0f});
  }

  absl::Span<const State> state() const override { return state_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> state_in, absl::Span<float* const> state_out) const override {
    Update(RmsPropRule{rate_, decay_, momentum_, epsilon_, centered_},
           MakeUpdateArrays(n, gradient, gradient_divisor, value_in, value_out, state_in, state_out));
  }

 private:
  const bool centered_;
  const float decay_;
  const float momentum_;
  const float epsilon_;
  std::vector<State> state_ = {{"RMSProp", 1.0f}, {"RMSProp_1", 0.0f}};  // constant after construction
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateRmsProp(const config::v1::OptimizerConfig::RmsProp& config) {
  return std::make_unique<RmsProp>(config.centered(), config.decay(), config.momentum(), config.epsilon());
}

}  // namespace lockstep

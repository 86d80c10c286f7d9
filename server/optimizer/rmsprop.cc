// RMSProp, TensorFlow's ApplyRMSProp and ApplyCenteredRMSProp (training_ops.cc, RMSPropOptimizer):
//   ms += (g * g - ms) * (1 - decay)
//   mg += (g - mg) * (1 - decay)                                    centered only
//   mom = mom * momentum + g * rate / sqrt(ms + epsilon)            plain
//   mom = mom * momentum + g * rate / sqrt(ms - mg * mg + epsilon)  centered
//   value -= mom
// Slots: "RMSProp" (ms, starts at 1); then centered has "RMSProp_1" (mg) and "RMSProp_2" (mom), plain has
// "RMSProp_1" (mom), which start at 0.
#include <cmath>

#include "server/optimizer/elementwise.h"
#include "server/optimizer/rules.h"

namespace lockstep {
namespace {

class RmsProp : public Optimizer {
 public:
  RmsProp(float decay, float momentum, float epsilon) : decay_(decay), momentum_(momentum), epsilon_(epsilon) {}

  absl::Span<const Slot> slots() const override { return slots_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> slots_in, absl::Span<float* const> slots_out) const override {
    ForEachElement<2>(n, gradient, gradient_divisor, value_in, value_out, slots_in, slots_out,
                      [rate = rate_, rest = 1.0f - decay_, momentum = momentum_, epsilon = epsilon_](
                          float g, float& value, float& ms, float& mom) {
                        ms += (g * g - ms) * rest;
                        mom = mom * momentum + g * rate / std::sqrt(ms + epsilon);
                        value -= mom;
                      });
  }

 private:
  const float decay_;
  const float momentum_;
  const float epsilon_;
  const std::vector<Slot> slots_ = {{"RMSProp", 1.0f}, {"RMSProp_1", 0.0f}};
  float rate_ = 0;
};

class CenteredRmsProp : public Optimizer {
 public:
  CenteredRmsProp(float decay, float momentum, float epsilon) : decay_(decay), momentum_(momentum), epsilon_(epsilon) {}

  absl::Span<const Slot> slots() const override { return slots_; }
  void BeginStep(float learning_rate) override { rate_ = learning_rate; }

  void Apply(int64_t n, const float* gradient, float gradient_divisor, const float* value_in, float* value_out,
             absl::Span<const float* const> slots_in, absl::Span<float* const> slots_out) const override {
    ForEachElement<3>(n, gradient, gradient_divisor, value_in, value_out, slots_in, slots_out,
                      [rate = rate_, rest = 1.0f - decay_, momentum = momentum_, epsilon = epsilon_](
                          float g, float& value, float& ms, float& mg, float& mom) {
                        ms += (g * g - ms) * rest;
                        mg += (g - mg) * rest;
                        mom = mom * momentum + g * rate / std::sqrt((ms - mg * mg) + epsilon);
                        value -= mom;
                      });
  }

 private:
  const float decay_;
  const float momentum_;
  const float epsilon_;
  const std::vector<Slot> slots_ = {{"RMSProp", 1.0f}, {"RMSProp_1", 0.0f}, {"RMSProp_2", 0.0f}};
  float rate_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> CreateRmsProp(const OptimizerConfig::RmsProp& config) {
  const float decay = config.has_decay() ? config.decay() : 0.9f;
  const float epsilon = config.has_epsilon() ? config.epsilon() : 1e-10f;
  if (config.centered()) return std::make_unique<CenteredRmsProp>(decay, config.momentum(), epsilon);
  return std::make_unique<RmsProp>(decay, config.momentum(), epsilon);
}

}  // namespace lockstep

#ifndef LOCKSTEP_KERNELS_UPDATE_RULES_H_
#define LOCKSTEP_KERNELS_UPDATE_RULES_H_

#include <cstdint>

namespace lockstep {

// Maximum number of states of a rule.
inline constexpr int kMostUpdateStates = 3;

// In updates of at least this many elements, the states are written past the caches if their new arrays begin at
// multiples of 64 bytes, since they would not stay in the caches until the next step.
inline constexpr int64_t kStreamedElements = 65536;

// The arrays of elements that an optimizer updates. The gradient of element i is gradient[i] / gradient_divisor,
// computed by one float division. Pointers need no alignment. An output may be the input of the same kind, and
// value_out may be the gradient; otherwise, outputs must not overlap other arrays.
struct UpdateArrays {
  int64_t n = 0;
  const float* gradient = nullptr;
  float gradient_divisor = 1;
  const float* value_in = nullptr;
  float* value_out = nullptr;
  const float* state_in[kMostUpdateStates] = {};
  float* state_out[kMostUpdateStates] = {};
};

// The parameters of each rule. server/optimizer has the formulas and their sources. Each operation of a formula is
// rounded separately.
struct SgdRule {
  float rate;
  float weight_decay = 0;
};
struct MomentumRule {
  float rate;
  float momentum;
  bool nesterov;
  float weight_decay = 0;
  // Factor of the gradient in the accumulator.
  float share = 1;
};
struct AdagradRule {
  float rate;
};
struct AdadeltaRule {
  float rate;
  float rho;
  float epsilon;
};
struct RmsPropRule {
  float rate;
  float decay;
  float momentum;
  float epsilon;
  bool centered;
};
struct AdamRule {
  float alpha;
  float beta1;
  float beta2;
  float epsilon;
  // If weight_decay is positive, the rule is AdamW.
  float weight_decay;
  float rate;
  bool amsgrad = false;
};
// FTRL with p = 1/2 (server/optimizer/ftrl.cc), computed with square roots. `rate` must not be 0.
struct FtrlRule {
  float rate;
  float l1;
  float l2;
};

struct ProximalSgdRule {
  float rate;
  float l1;
  float l2;
};
struct ProximalAdagradRule {
  float rate;
  float l1;
  float l2;
};
struct AdagradDaRule {
  float rate;
  // l1 * T and l2 * T * rate, where T is the global step after the update.
  float l1;
  float l2;
};
struct NadamRule {
  // Factors of the gradient and its moving average in the update.
  float gradient_rate;
  float average_rate;
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;
  // If true, the variable shrinks by weight_decay * rate. Otherwise weight_decay times the variable is added to the
  // gradient.
  bool decouples;
  float rate;
};
struct LionRule {
  float rate;
  float beta1;
  float beta2;
  float weight_decay;
};

void Update(const SgdRule& rule, const UpdateArrays& arrays);
void Update(const MomentumRule& rule, const UpdateArrays& arrays);
void Update(const AdagradRule& rule, const UpdateArrays& arrays);
void Update(const AdadeltaRule& rule, const UpdateArrays& arrays);
void Update(const RmsPropRule& rule, const UpdateArrays& arrays);
void Update(const AdamRule& rule, const UpdateArrays& arrays);
void Update(const FtrlRule& rule, const UpdateArrays& arrays);
void Update(const ProximalSgdRule& rule, const UpdateArrays& arrays);
void Update(const ProximalAdagradRule& rule, const UpdateArrays& arrays);
void Update(const AdagradDaRule& rule, const UpdateArrays& arrays);
void Update(const NadamRule& rule, const UpdateArrays& arrays);
void Update(const LionRule& rule, const UpdateArrays& arrays);

// average_out[i] = average_in[i] - (average_in[i] - value[i]) * share
void UpdateMovingAverage(int64_t n, float share, const float* value, const float* average_in, float* average_out);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_UPDATE_RULES_H_

#include "lockstep/kernels/update_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "Eigen/Core"
#include "gtest/gtest.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/kernels/testing/each_target.h"
#include "lockstep/kernels/testing/float_arrays.h"
#include "lockstep/kernels/testing/random_case.h"

namespace lockstep {
namespace {

// `n` elements of a variable with its states, which are positive.
struct Variable {
  explicit Variable(int64_t n) : gradient(RandomFloats(n, 1)), value(RandomFloats(n, 2)) {
    for (int k = 0; k < kMostUpdateStates; ++k) {
      states.push_back(RandomFloats(n, 3 + k));
      for (float& x : states.back()) x = std::abs(x);
    }
  }

  // Returns arrays that update `n` elements in place, starting at `first`.
  UpdateArrays Arrays(float divisor, int64_t first, int64_t n) {
    UpdateArrays arrays;
    arrays.n = n;
    arrays.gradient = gradient.data() + first;
    arrays.gradient_divisor = divisor;
    arrays.value_in = arrays.value_out = value.data() + first;
    for (int k = 0; k < kMostUpdateStates; ++k) arrays.state_in[k] = arrays.state_out[k] = states[k].data() + first;
    return arrays;
  }

  template <typename Rule>
  void Apply(const Rule& rule, float divisor) {
    Apply(rule, divisor, 0, static_cast<int64_t>(value.size()));
  }
  template <typename Rule>
  void Apply(const Rule& rule, float divisor, int64_t first, int64_t n) {
    Update(rule, Arrays(divisor, first, n));
  }

  std::vector<float> All() const {
    std::vector<float> all = value;
    for (const std::vector<float>& state : states) all.insert(all.end(), state.begin(), state.end());
    return all;
  }

  std::vector<float> gradient, value;
  std::vector<std::vector<float>> states;
};

template <typename Rule>
void ExpectSameBits(const Rule& rule) {
  for (const int64_t n : {1, 7, 8, 15, 17, 64, 1003}) {
    for (const float divisor : {1.0f, 3.0f, 4.0f}) {
      ExpectSameBitsOnEachTarget([&] {
        Variable variable(n);
        variable.Apply(rule, divisor);
        variable.Apply(rule, divisor);
        return variable.All();
      });
    }
  }
}

TEST(UpdateRulesTest, EveryTargetHasTheSameBits) {
  ExpectSameBits(SgdRule{0.1f});
  ExpectSameBits(MomentumRule{0.1f, 0.9f, false});
  ExpectSameBits(MomentumRule{0.1f, 0.9f, true});
  ExpectSameBits(AdagradRule{0.1f});
  ExpectSameBits(AdadeltaRule{0.1f, 0.95f, 1e-6f});
  ExpectSameBits(RmsPropRule{0.1f, 0.9f, 0.5f, 1e2f, true});
  ExpectSameBits(RmsPropRule{0.1f, 0.9f, 0.5f, 1e-6f, false});
  ExpectSameBits(AdamRule{0.1f, 0.9f, 0.99f, 1e-7f, 0, 0.1f});
  ExpectSameBits(AdamRule{0.1f, 0.9f, 0.99f, 1e-7f, 0.01f, 0.1f});
  ExpectSameBits(FtrlRule{0.1f, 0.3f, 0.2f});
  ExpectSameBits(SgdRule{0.1f, 0.01f});
  ExpectSameBits(MomentumRule{0.1f, 0.9f, false, 0.01f, 0.8f});
  ExpectSameBits(AdamRule{0.1f, 0.9f, 0.99f, 1e-7f, 0, 0.1f, true});
  ExpectSameBits(ProximalSgdRule{0.1f, 0.3f, 0.2f});
  ExpectSameBits(ProximalAdagradRule{0.1f, 0.3f, 0.2f});
  ExpectSameBits(AdagradDaRule{0.1f, 0.3f, 0.2f});
  ExpectSameBits(NadamRule{0.01f, 0.1f, 0.9f, 0.99f, 1e-7f, 0.01f, false, 0.1f});
  ExpectSameBits(NadamRule{0.01f, 0.1f, 0.9f, 0.99f, 1e-7f, 0.01f, true, 0.1f});
  ExpectSameBits(LionRule{0.1f, 0.9f, 0.99f, 0.01f});
}

// Aligned states with at least kStreamedElements elements are written differently.
TEST(UpdateRulesTest, LargeStatesHaveTheSameBits) {
  constexpr int64_t kElements = kStreamedElements + 41;
  const AdamRule rule{0.1f, 0.9f, 0.99f, 1e-7f, 0, 0.1f};
  const Variable start(kElements);
  Variable expected = start;
  for (int64_t i = 0; i < kElements; i += 1000) expected.Apply(rule, 3, i, std::min<int64_t>(1000, kElements - i));
  ForEachTarget([&] {
    for (const int offset : {0, 16, 1}) {
      AlignedBuffer memory[] = {AlignedBuffer((kElements + 16) * sizeof(float)),
                                AlignedBuffer((kElements + 16) * sizeof(float))};
      Variable actual = start;
      UpdateArrays arrays = actual.Arrays(3, 0, kElements);
      for (int k = 0; k < 2; ++k) arrays.state_out[k] = memory[k].as<float>() + offset;
      Update(rule, arrays);
      ASSERT_EQ(actual.value, expected.value) << offset;
      for (int k = 0; k < 2; ++k) {
        ASSERT_EQ(std::vector<float>(arrays.state_out[k], arrays.state_out[k] + kElements), expected.states[k])
            << offset << " " << k;
      }
    }
  });
}

using Array = Eigen::Map<Eigen::ArrayXf>;

TEST(UpdateRulesTest, AdamAgreesWithEigen) {
  ForEachTarget([] {
    Variable expected(1003);
    Array g(expected.gradient.data(), 1003), value(expected.value.data(), 1003);
    Array m(expected.states[0].data(), 1003), v(expected.states[1].data(), 1003);
    m += (g / 3.0f - m) * 0.1f;
    v += ((g / 3.0f).square() - v) * 0.01f;
    value -= m * 0.2f / (v.sqrt() + 1e-7f);
    Variable actual(1003);
    actual.Apply(AdamRule{0.2f, 0.9f, 0.99f, 1e-7f, 0, 0}, 3);
    for (int i = 0; i < 1003; ++i) ASSERT_NEAR(actual.value[i], expected.value[i], 1e-5) << i;
  });
}

// Covers the division by the divisor and the multiplication by its inverse, which has the same bits if the divisor is a
// power of two.
TEST(UpdateRulesTest, TheGradientIsRoundedOnce) {
  for (const float divisor : {1.0f, 2.0f, 3.0f, 7.0f, 64.0f, 0.5f}) {
    ForEachTarget([&] {
      Variable variable(100);
      const Variable before = variable;
      variable.Apply(SgdRule{0.25f}, divisor);
      for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(variable.value[i], before.value[i] - before.gradient[i] / divisor * 0.25f) << i;
      }
    });
  }
}

TEST(UpdateRulesTest, AveragesMoveByTheirShare) {
  const std::vector<float> value = RandomFloats(37, 1);
  const std::vector<float> average = RandomFloats(37, 2);
  ForEachTarget([&] {
    std::vector<float> result(37);
    UpdateMovingAverage(37, 0.01f, value.data(), average.data(), result.data());
    for (int i = 0; i < 37; ++i) ASSERT_EQ(result[i], average[i] - (average[i] - value[i]) * 0.01f) << i;
  });
}

// Returns a rule with random parameters.
template <typename Rule>
Rule RandomRule(RandomCase* c);
template <>
SgdRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->OneIn(2) ? 0 : c->Positive(0.01f)};
}
template <>
MomentumRule RandomRule(RandomCase* c) {
  const float weight_decay = c->OneIn(2) ? 0 : c->Positive(0.01f);
  return {c->Positive(0.1f), c->Positive(0.4f), c->OneIn(2), weight_decay, c->OneIn(2) ? 1 : c->Positive(0.4f)};
}
template <>
AdagradRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f)};
}
template <>
AdadeltaRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->Positive(0.4f), c->Positive(1e-6f)};
}
template <>
RmsPropRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->Positive(0.4f), c->Positive(0.4f), c->Positive(1e-6f), c->OneIn(2)};
}
template <>
AdamRule RandomRule(RandomCase* c) {
  const float weight_decay = c->OneIn(2) ? 0 : c->Positive(0.01f);
  const bool amsgrad = c->OneIn(2);
  return {c->Positive(0.1f), c->Positive(0.4f), c->Positive(0.4f), c->Positive(1e-7f), weight_decay, 0.1f, amsgrad};
}
template <>
FtrlRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->Positive(0.3f), c->Positive(0.3f)};
}
template <>
ProximalSgdRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->Positive(0.3f), c->Positive(0.3f)};
}
template <>
ProximalAdagradRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->Positive(0.3f), c->Positive(0.3f)};
}
template <>
AdagradDaRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->Positive(0.3f), c->Positive(0.3f)};
}
template <>
NadamRule RandomRule(RandomCase* c) {
  const float weight_decay = c->OneIn(2) ? 0 : c->Positive(0.01f);
  const bool decouples = c->OneIn(2);
  return {c->Positive(0.1f),  c->Positive(0.1f), c->Positive(0.4f), c->Positive(0.4f),
          c->Positive(1e-7f), weight_decay,      decouples,         c->Positive(0.1f)};
}
template <>
LionRule RandomRule(RandomCase* c) {
  return {c->Positive(0.1f), c->Positive(0.4f), c->Positive(0.4f), c->OneIn(2) ? 0 : c->Positive(0.01f)};
}

int States(const SgdRule&) { return 0; }
int States(const MomentumRule&) { return 1; }
int States(const AdagradRule&) { return 1; }
int States(const AdadeltaRule&) { return 2; }
int States(const RmsPropRule& rule) { return rule.centered ? 3 : 2; }
int States(const AdamRule& rule) { return rule.amsgrad ? 3 : 2; }
int States(const FtrlRule&) { return 2; }
int States(const ProximalSgdRule&) { return 0; }
int States(const ProximalAdagradRule&) { return 1; }
int States(const AdagradDaRule&) { return 2; }
int States(const NadamRule&) { return 2; }
int States(const LionRule&) { return 1; }

// Expects each element to have the same bits as when it is updated alone or, if the array is large, in a part of the
// array.
template <typename Rule>
void TryRandomCase(RandomCase* c) {
  const Rule rule = RandomRule<Rule>(c);
  const int states = States(rule);
  const bool large = c->OneIn(200);
  const int64_t n = large ? kStreamedElements + c->Size(0, 100) : c->Size(0, 300);
  const float divisors[] = {1, 2, 3, 7, 0.25f, 0x1p-120f};
  std::vector<float> gradient = c->Numbers(n), value = c->Numbers(n), state[kMostUpdateStates];
  for (std::vector<float>& s : state) s = c->Numbers(n);

  UpdateArrays arrays;
  arrays.n = n;
  arrays.gradient_divisor = c->OneOf(divisors);
  arrays.gradient = c->Input(gradient);
  const auto place = [&](const std::vector<float>& from, const float** in, float** out) {
    const bool in_place = c->OneIn(2);
    *out = in_place ? c->InOut(from) : c->Output(n);
    *in = in_place ? *out : c->Input(from);
  };
  place(value, &arrays.value_in, &arrays.value_out);
  for (int k = 0; k < states; ++k) place(state[k], &arrays.state_in[k], &arrays.state_out[k]);
  Update(rule, arrays);

  const int64_t part = large ? 997 : 1;
  for (int64_t at = 0; at < n; at += part) {
    UpdateArrays one;
    one.n = std::min(part, n - at);
    one.gradient_divisor = arrays.gradient_divisor;
    one.gradient = &gradient[at];
    one.value_in = one.value_out = &value[at];
    for (int k = 0; k < states; ++k) one.state_in[k] = one.state_out[k] = &state[k][at];
    Update(rule, one);
  }
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_PRED2(SameFloats, arrays.value_out[i], value[i]) << i;
    for (int k = 0; k < states; ++k) ASSERT_PRED2(SameFloats, arrays.state_out[k][i], state[k][i]) << k << " " << i;
  }
}

TEST(UpdateRulesTest, TargetsAgreeOnRandomShapes) {
  using Try = void (*)(RandomCase*);
  const Try rules[] = {TryRandomCase<SgdRule>,       TryRandomCase<MomentumRule>,    TryRandomCase<AdagradRule>,
                       TryRandomCase<AdadeltaRule>,  TryRandomCase<RmsPropRule>,     TryRandomCase<AdamRule>,
                       TryRandomCase<FtrlRule>,      TryRandomCase<ProximalSgdRule>, TryRandomCase<ProximalAdagradRule>,
                       TryRandomCase<AdagradDaRule>, TryRandomCase<NadamRule>,       TryRandomCase<LionRule>};
  ForEachRandomCase(2500, [&](RandomCase& c) { c.OneOf(rules)(&c); });
}

TEST(UpdateRulesTest, TargetsAgreeOnAveragesOfRandomShapes) {
  ForEachRandomCase(500, [](RandomCase& c) {
    const int64_t n = c.Size(0, 300);
    const float share = c.Positive(0.1f);
    const std::vector<float> value = c.Numbers(n), average = c.Numbers(n);
    const bool in_place = c.OneIn(2);
    float* const result = in_place ? c.InOut(average) : c.Output(n);
    UpdateMovingAverage(n, share, c.Input(value), in_place ? result : c.Input(average), result);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_PRED2(SameFloats, result[i], average[i] - (average[i] - value[i]) * share) << i;
    }
  });
}

}  // namespace
}  // namespace lockstep

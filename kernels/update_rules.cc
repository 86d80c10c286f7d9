#include "lockstep/kernels/update_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update_rules.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
// Must come after foreach_target.h.
#include "hwy/cache_control.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

using V = FloatVector;

HWY_INLINE V Constant(float x) { return hn::Set(Floats(), x); }

// Reads a vector of elements at `at`, calls rule(gradient, &value, states), and writes the vector.
template <int kStates, class Rule, class Load, class Store>
HWY_INLINE void UpdateVector(const UpdateArrays& a, int64_t at, bool multiplies, V divisor, const Rule& rule, Load load,
                             Store store) {
  V g = load(a.gradient + at);
  g = multiplies ? hn::Mul(g, divisor) : hn::Div(g, divisor);
  V value = load(a.value_in + at);
  V states[kStates + 1];
#pragma GCC unroll 3
  for (int k = 0; k < kStates; ++k) states[k] = load(a.state_in[k] + at);
  rule(g, value, states);
#pragma GCC unroll 3
  for (int k = 0; k < kStates; ++k) store(states[k], a.state_out[k] + at);
  store(value, a.value_out + at);
}

// Number of vectors in a cache line.
constexpr int kLineVectors = 16 / kFloatLanes;

// Like UpdateVector, but for kLineVectors vectors. Writes each array's cache line as a whole, because memory is slower
// while cache lines of several arrays are partially written. If kStreams, the states bypass the caches.
template <int kStates, bool kStreams, class Rule>
HWY_INLINE void UpdateLine(const UpdateArrays& a, int64_t at, bool multiplies, V divisor, const Rule& rule) {
  const Floats d;
  V values[kLineVectors];
  V states[kLineVectors][kStates + 1];
#pragma GCC unroll 4
  for (int v = 0; v < kLineVectors; ++v) {
    const int64_t i = at + v * kFloatLanes;
    V g = hn::LoadU(d, a.gradient + i);
    g = multiplies ? hn::Mul(g, divisor) : hn::Div(g, divisor);
    values[v] = hn::LoadU(d, a.value_in + i);
#pragma GCC unroll 3
    for (int k = 0; k < kStates; ++k) states[v][k] = hn::LoadU(d, a.state_in[k] + i);
    rule(g, values[v], states[v]);
  }
#pragma GCC unroll 3
  for (int k = 0; k < kStates; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kLineVectors; ++v) {
      float* const to = a.state_out[k] + at + v * kFloatLanes;
      if constexpr (kStreams) {
        hn::Stream(states[v][k], d, to);
      } else {
        hn::StoreU(states[v][k], d, to);
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kLineVectors; ++v) hn::StoreU(values[v], d, a.value_out + at + v * kFloatLanes);
}

// Updates whole cache lines, and returns the number of updated elements.
template <int kStates, bool kStreams, class Rule>
HWY_INLINE int64_t UpdateLines(const UpdateArrays& a, bool multiplies, V divisor, const Rule& rule) {
  constexpr int64_t kLine = kLineVectors * kFloatLanes;
  int64_t at = 0;
  for (; at + kLine <= a.n; at += kLine) UpdateLine<kStates, kStreams>(a, at, multiplies, divisor, rule);
  return at;
}

// Returns true if the states are written past the caches (kStreamedElements).
template <int kStates>
bool Streams(const UpdateArrays& a) {
  return kStates > 0 && a.n >= kStreamedElements && std::all_of(a.state_out, a.state_out + kStates, [](const float* p) {
           return reinterpret_cast<uintptr_t>(p) % 64 == 0;
         });
}

template <int kStates, class Rule>
HWY_INLINE void UpdateAll(const UpdateArrays& a, const Rule& rule) {
  const Floats d;
  // If the divisor is a power of two, dividing by it and multiplying by its inverse produce the same bits.
  int exponent;
  const bool multiplies = std::frexp(a.gradient_divisor, &exponent) == 0.5f && exponent > -100 && exponent < 100;
  const V divisor = Constant(multiplies ? 1.0f / a.gradient_divisor : a.gradient_divisor);
  int64_t at = 0;
  if (Streams<kStates>(a)) {
    at = UpdateLines<kStates, true>(a, multiplies, divisor, rule);
    hwy::FlushStream();
  } else {
    at = UpdateLines<kStates, false>(a, multiplies, divisor, rule);
  }
  for (; at + kFloatLanes <= a.n; at += kFloatLanes) {
    UpdateVector<kStates>(
        a, at, multiplies, divisor, rule, [&](const float* p) HWY_ATTR { return hn::LoadU(d, p); },
        [&](V x, float* p) HWY_ATTR { hn::StoreU(x, d, p); });
  }
  if (at == a.n) return;
  const int64_t count = a.n - at;
  UpdateVector<kStates>(
      a, at, multiplies, divisor, rule, [&](const float* p) HWY_ATTR { return LoadPart(d, p, count); },
      [&](V x, float* p) HWY_ATTR { StorePart(x, d, p, count); });
}

void UpdateSgd(const SgdRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  if (rule.weight_decay > 0) {
    const V decay = Constant(rule.weight_decay);
    UpdateAll<0>(arrays, [&](V g, V& value, V*)
                             HWY_ATTR { value = hn::Sub(value, hn::Mul(hn::Add(g, hn::Mul(value, decay)), rate)); });
    return;
  }
  UpdateAll<0>(arrays, [&](V g, V& value, V*) HWY_ATTR { value = hn::Sub(value, hn::Mul(g, rate)); });
}

void UpdateMomentum(const MomentumRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  const V momentum = Constant(rule.momentum);
  const bool nesterov = rule.nesterov;
  const auto step = [&](V g, V sample, V& value, V& accumulator) HWY_ATTR {
    const V a = hn::Add(hn::Mul(accumulator, momentum), sample);
    const V change = nesterov ? hn::Add(hn::Mul(g, rate), hn::Mul(hn::Mul(a, momentum), rate)) : hn::Mul(a, rate);
    value = hn::Sub(value, change);
    accumulator = a;
  };
  if (rule.weight_decay == 0 && rule.share == 1) {
    UpdateAll<1>(arrays, [&](V g, V& value, V* state) HWY_ATTR { step(g, g, value, state[0]); });
    return;
  }
  const V decay = Constant(rule.weight_decay);
  const V share = Constant(rule.share);
  UpdateAll<1>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    g = hn::Add(g, hn::Mul(value, decay));
    step(g, hn::Mul(g, share), value, state[0]);
  });
}

void UpdateAdagrad(const AdagradRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  UpdateAll<1>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    state[0] = hn::Add(state[0], hn::Mul(g, g));
    value = hn::Sub(value, hn::Div(hn::Mul(g, rate), hn::Sqrt(state[0])));
  });
}

void UpdateAdadelta(const AdadeltaRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  const V rho = Constant(rule.rho);
  const V rest = Constant(1.0f - rule.rho);
  const V epsilon = Constant(rule.epsilon);
  UpdateAll<2>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    const V accumulator = hn::Add(hn::Mul(state[0], rho), hn::Mul(hn::Mul(g, g), rest));
    const V root = hn::Sqrt(hn::Add(state[1], epsilon));
    const V update = hn::Mul(hn::Div(root, hn::Sqrt(hn::Add(accumulator, epsilon))), g);
    value = hn::Sub(value, hn::Mul(update, rate));
    state[1] = hn::Add(hn::Mul(state[1], rho), hn::Mul(hn::Mul(update, update), rest));
    state[0] = accumulator;
  });
}

// x + (sample - x) * share
HWY_INLINE V Towards(V x, V sample, V share) { return hn::Add(x, hn::Mul(hn::Sub(sample, x), share)); }

void UpdateRmsProp(const RmsPropRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  const V rest = Constant(1.0f - rule.decay);
  const V momentum = Constant(rule.momentum);
  const V epsilon = Constant(rule.epsilon);
  const auto step = [&](V g, V variance, V& value, V& moving) HWY_ATTR {
    const V change = hn::Div(hn::Mul(g, rate), hn::Sqrt(hn::Add(variance, epsilon)));
    moving = hn::Add(hn::Mul(moving, momentum), change);
    value = hn::Sub(value, moving);
  };
  if (rule.centered) {
    UpdateAll<3>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
      state[0] = Towards(state[0], hn::Mul(g, g), rest);
      state[1] = Towards(state[1], g, rest);
      step(g, hn::Sub(state[0], hn::Mul(state[1], state[1])), value, state[2]);
    });
  } else {
    UpdateAll<2>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
      state[0] = Towards(state[0], hn::Mul(g, g), rest);
      step(g, state[0], value, state[1]);
    });
  }
}

void UpdateAdam(const AdamRule& rule, const UpdateArrays& arrays) {
  const V alpha = Constant(rule.alpha);
  const V rest1 = Constant(1.0f - rule.beta1);
  const V rest2 = Constant(1.0f - rule.beta2);
  const V epsilon = Constant(rule.epsilon);
  const V decay = Constant(rule.weight_decay);
  const V rate = Constant(rule.rate);
  const bool decays = rule.weight_decay > 0;
  const auto moments = [&](V g, V& value, V* state) HWY_ATTR {
    if (decays) value = hn::Sub(value, hn::Mul(hn::Mul(value, decay), rate));
    state[0] = Towards(state[0], g, rest1);
    state[1] = Towards(state[1], hn::Mul(g, g), rest2);
  };
  const auto step = [&](V average, V second, V& value) HWY_ATTR {
    value = hn::Sub(value, hn::Div(hn::Mul(average, alpha), hn::Add(hn::Sqrt(second), epsilon)));
  };
  if (rule.amsgrad) {
    UpdateAll<3>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
      moments(g, value, state);
      state[2] = hn::IfThenElse(hn::Gt(state[1], state[2]), state[1], state[2]);
      step(state[0], state[2], value);
    });
  } else {
    UpdateAll<2>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
      moments(g, value, state);
      step(state[0], state[1], value);
    });
  }
}

void UpdateFtrl(const FtrlRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  const V l1 = Constant(rule.l1);
  const V twice_l2 = Constant(2.0f * rule.l2);
  UpdateAll<2>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    const V accumulator = hn::Add(state[0], hn::Mul(g, g));
    const V root = hn::Sqrt(accumulator);
    const V change = hn::Mul(hn::Div(hn::Sub(root, hn::Sqrt(state[0])), rate), value);
    const V linear = hn::Add(state[1], hn::Sub(g, change));
    const V numerator = hn::Sub(hn::CopySign(l1, linear), linear);
    const V quotient = hn::Div(numerator, hn::Add(hn::Div(root, rate), twice_l2));
    value = hn::IfThenElseZero(hn::Gt(hn::Abs(linear), l1), quotient);
    state[0] = accumulator;
    state[1] = linear;
  });
}

// sign(x) * max(|x| - limit, 0)
HWY_INLINE V Shrink(V x, V limit) {
  const V rest = hn::Sub(hn::Abs(x), limit);
  return hn::IfThenElseZero(hn::Gt(rest, hn::Zero(Floats())), hn::CopySign(rest, x));
}

void UpdateProximalSgd(const ProximalSgdRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  const V limit = Constant(rule.l1 * rule.rate);
  const V divisor = Constant(1.0f + rule.l2 * rule.rate);
  UpdateAll<0>(arrays, [&](V g, V& value, V*)
                           HWY_ATTR { value = hn::Div(Shrink(hn::Sub(value, hn::Mul(g, rate)), limit), divisor); });
}

void UpdateProximalAdagrad(const ProximalAdagradRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  const V l1 = Constant(rule.l1);
  const V l2 = Constant(rule.l2);
  const V one = Constant(1);
  UpdateAll<1>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    state[0] = hn::Add(state[0], hn::Mul(g, g));
    const V own_rate = hn::Div(rate, hn::Sqrt(state[0]));
    const V moved = hn::Sub(value, hn::Mul(g, own_rate));
    value = hn::Div(Shrink(moved, hn::Mul(own_rate, l1)), hn::Add(one, hn::Mul(l2, own_rate)));
  });
}

void UpdateAdagradDa(const AdagradDaRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(-rule.rate);
  const V l1 = Constant(rule.l1);
  const V l2 = Constant(rule.l2);
  UpdateAll<2>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    state[0] = hn::Add(state[0], g);
    state[1] = hn::Add(state[1], hn::Mul(g, g));
    value = hn::Div(hn::Mul(rate, Shrink(state[0], l1)), hn::Add(l2, hn::Sqrt(state[1])));
  });
}

void UpdateNadam(const NadamRule& rule, const UpdateArrays& arrays) {
  const V gradient_rate = Constant(rule.gradient_rate);
  const V average_rate = Constant(rule.average_rate);
  const V rest1 = Constant(1.0f - rule.beta1);
  const V rest2 = Constant(1.0f - rule.beta2);
  const V epsilon = Constant(rule.epsilon);
  const V decay = Constant(rule.weight_decay);
  const V rate = Constant(rule.rate);
  const bool couples = rule.weight_decay > 0 && !rule.decouples;
  const bool shrinks = rule.weight_decay > 0 && rule.decouples;
  UpdateAll<2>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    if (couples) g = hn::Add(g, hn::Mul(value, decay));
    if (shrinks) value = hn::Sub(value, hn::Mul(hn::Mul(value, decay), rate));
    state[0] = Towards(state[0], g, rest1);
    state[1] = Towards(state[1], hn::Mul(g, g), rest2);
    const V change = hn::Add(hn::Mul(g, gradient_rate), hn::Mul(state[0], average_rate));
    value = hn::Sub(value, hn::Div(change, hn::Add(hn::Sqrt(state[1]), epsilon)));
  });
}

void UpdateLion(const LionRule& rule, const UpdateArrays& arrays) {
  const V rate = Constant(rule.rate);
  const V beta1 = Constant(rule.beta1);
  const V rest1 = Constant(1.0f - rule.beta1);
  const V beta2 = Constant(rule.beta2);
  const V rest2 = Constant(1.0f - rule.beta2);
  const V decay = Constant(rule.weight_decay);
  const bool decays = rule.weight_decay > 0;
  UpdateAll<1>(arrays, [&](V g, V& value, V* state) HWY_ATTR {
    if (decays) value = hn::Sub(value, hn::Mul(hn::Mul(value, decay), rate));
    const V direction = hn::Add(hn::Mul(state[0], beta1), hn::Mul(g, rest1));
    const auto moves = hn::Gt(hn::Abs(direction), hn::Zero(Floats()));
    value = hn::Sub(value, hn::IfThenElseZero(moves, hn::CopySign(rate, direction)));
    state[0] = hn::Add(hn::Mul(state[0], beta2), hn::Mul(g, rest2));
  });
}

void MovingAverage(int64_t n, float share, const float* value, const float* average_in, float* average_out) {
  const V factor = Constant(share);
  Transform(n, average_in, value, average_out,
            [&](V average, V x) HWY_ATTR { return hn::Sub(average, hn::Mul(hn::Sub(average, x), factor)); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(UpdateSgd);
HWY_EXPORT(UpdateMomentum);
HWY_EXPORT(UpdateAdagrad);
HWY_EXPORT(UpdateAdadelta);
HWY_EXPORT(UpdateRmsProp);
HWY_EXPORT(UpdateAdam);
HWY_EXPORT(UpdateFtrl);
HWY_EXPORT(UpdateProximalSgd);
HWY_EXPORT(UpdateProximalAdagrad);
HWY_EXPORT(UpdateAdagradDa);
HWY_EXPORT(UpdateNadam);
HWY_EXPORT(UpdateLion);
HWY_EXPORT(MovingAverage);

void Update(const SgdRule& rule, const UpdateArrays& arrays) { HWY_DYNAMIC_DISPATCH(UpdateSgd)(rule, arrays); }
void Update(const MomentumRule& rule, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(UpdateMomentum)(rule, arrays);
}
void Update(const AdagradRule& rule, const UpdateArrays& arrays) { HWY_DYNAMIC_DISPATCH(UpdateAdagrad)(rule, arrays); }
void Update(const AdadeltaRule& rule, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(UpdateAdadelta)(rule, arrays);
}
void Update(const RmsPropRule& rule, const UpdateArrays& arrays) { HWY_DYNAMIC_DISPATCH(UpdateRmsProp)(rule, arrays); }
void Update(const AdamRule& rule, const UpdateArrays& arrays) { HWY_DYNAMIC_DISPATCH(UpdateAdam)(rule, arrays); }
void Update(const FtrlRule& rule, const UpdateArrays& arrays) { HWY_DYNAMIC_DISPATCH(UpdateFtrl)(rule, arrays); }
void Update(const ProximalSgdRule& rule, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(UpdateProximalSgd)(rule, arrays);
}
void Update(const ProximalAdagradRule& rule, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(UpdateProximalAdagrad)(rule, arrays);
}
void Update(const AdagradDaRule& rule, const UpdateArrays& arrays) {
  HWY_DYNAMIC_DISPATCH(UpdateAdagradDa)(rule, arrays);
}
void Update(const NadamRule& rule, const UpdateArrays& arrays) { HWY_DYNAMIC_DISPATCH(UpdateNadam)(rule, arrays); }
void Update(const LionRule& rule, const UpdateArrays& arrays) { HWY_DYNAMIC_DISPATCH(UpdateLion)(rule, arrays); }

void UpdateMovingAverage(int64_t n, float share, const float* value, const float* average_in, float* average_out) {
  HWY_DYNAMIC_DISPATCH(MovingAverage)(n, share, value, average_in, average_out);
}

}  // namespace lockstep
#endif  // HWY_ONCE

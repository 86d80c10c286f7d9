#include "lockstep/kernels/elementwise.h"

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/eight-inl.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

void AddOnTarget(int64_t size, const float* x, const float* y, float* z) {
  Transform(size, x, y, z, [](FloatVector a, FloatVector b) HWY_ATTR { return hn::Add(a, b); });
}

PenaltySums SumPenaltiesOnTarget(int64_t size, const float* w) {
  Eight absolute = SetEight(0);
  Eight squares = SetEight(0);
  const auto add = [&](const Eight& x) HWY_ATTR {
    absolute = MapEight([](auto sum, auto v) HWY_ATTR { return hn::Add(sum, hn::Abs(v)); }, absolute, x);
    squares = MapEight([](auto sum, auto v) HWY_ATTR { return hn::MulAdd(v, v, sum); }, squares, x);
  };
  int64_t i = 0;
  for (; i + 8 <= size; i += 8) add(LoadEight(w + i, 8, 0));
  if (i < size) add(LoadEight(w + i, size - i, 0));
  return {SumEight(absolute), SumEight(squares)};
}

void PenaltyGradientOnTarget(float l1, float l2, int64_t size, const float* w, float* g) {
  const Floats d;
  const FloatVector zero = hn::Zero(d);
  const FloatVector plus = hn::Set(d, l1);
  const FloatVector minus = hn::Set(d, -l1);
  const FloatVector factor = hn::Set(d, l2);
  if (l1 == 0) {
    Transform(size, w, g, g, [&](FloatVector x, FloatVector y) HWY_ATTR { return hn::MulAdd(factor, x, y); });
    return;
  }
  Transform(size, w, g, g, [&](FloatVector x, FloatVector y) HWY_ATTR {
    const FloatVector sign = hn::IfThenElse(hn::Gt(x, zero), plus, hn::IfThenElseZero(hn::Lt(x, zero), minus));
    return hn::Add(hn::MulAdd(factor, x, y), sign);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(AddOnTarget);
HWY_EXPORT(SumPenaltiesOnTarget);
HWY_EXPORT(PenaltyGradientOnTarget);

void AddElements(int64_t size, const float* x, const float* y, float* z) {
  HWY_DYNAMIC_DISPATCH(AddOnTarget)(size, x, y, z);
}

PenaltySums SumPenalties(int64_t size, const float* w) { return HWY_DYNAMIC_DISPATCH(SumPenaltiesOnTarget)(size, w); }

void AddPenaltyGradient(float l1, float l2, int64_t size, const float* w, float* g) {
  HWY_DYNAMIC_DISPATCH(PenaltyGradientOnTarget)(l1, l2, size, w, g);
}

}  // namespace lockstep
#endif  // HWY_ONCE

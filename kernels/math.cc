#include "lockstep/kernels/math.h"

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/math-inl.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

void ExpAll(int64_t size, const float* x, float* y) {
  Transform(size, x, y, [](FloatVector v) HWY_ATTR { return Exp(Floats(), v); });
}
void LogAll(int64_t size, const float* x, float* y) {
  Transform(size, x, y, [](FloatVector v) HWY_ATTR { return Log(Floats(), v); });
}
void TanhAll(int64_t size, const float* x, float* y) {
  Transform(size, x, y, [](FloatVector v) HWY_ATTR { return Tanh(Floats(), v); });
}
void SigmoidAll(int64_t size, const float* x, float* y) {
  Transform(size, x, y, [](FloatVector v) HWY_ATTR { return Sigmoid(Floats(), v); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(ExpAll);
HWY_EXPORT(LogAll);
HWY_EXPORT(TanhAll);
HWY_EXPORT(SigmoidAll);

void ExpOf(int64_t size, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(ExpAll)(size, x, y); }
void LogOf(int64_t size, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(LogAll)(size, x, y); }
void TanhOf(int64_t size, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(TanhAll)(size, x, y); }
void SigmoidOf(int64_t size, const float* x, float* y) { HWY_DYNAMIC_DISPATCH(SigmoidAll)(size, x, y); }

}  // namespace lockstep
#endif  // HWY_ONCE

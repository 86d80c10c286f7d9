#include "lockstep/kernels/vectors/fma_peak.h"

#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vectors/fma_peak.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Enough independent chains to keep two units busy if a result takes five cycles.
constexpr int kChains = 12;

int64_t RunOnTarget(int64_t rounds) {
  const Floats d;
  const FloatVector half = hn::Set(d, 0.5f);
  FloatVector sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], half, half);
  }
  FloatVector sum = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, sums[i]);
  volatile float used = hn::GetLane(sum);
  (void)used;
  return rounds * kChains * kFloatLanes;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(RunOnTarget);

int64_t RunMultiplyAdds(int64_t rounds) { return HWY_DYNAMIC_DISPATCH(RunOnTarget)(rounds); }

}  // namespace lockstep
#endif  // HWY_ONCE

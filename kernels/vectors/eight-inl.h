// Handles eight floats at a time on every target, for sums along a row. Element i of the row is added to sum i % 8, and
// the eight sums are added in a fixed tree, so that the bits do not depend on the vector width. Compiled once for each
// target.
#if defined(LOCKSTEP_KERNELS_VECTORS_EIGHT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_EIGHT_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_EIGHT_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_EIGHT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// A vector of eight floats or, where vectors have only four lanes, one half of it.
using EightTag = hn::CappedTag<float, 8>;
inline constexpr int kEightLanes = hn::MaxLanes(EightTag());
inline constexpr int kEightParts = 8 / kEightLanes;

struct Eight {
  HWY_INLINE Eight() {}  // Not initialized.
  hn::Vec<EightTag> parts[kEightParts];
};

// Calls f(part of a, ...) for each part.
template <class F, class... Args>
HWY_INLINE Eight MapEight(F f, const Args&... args) {
  Eight result;
#pragma GCC unroll 2
  for (int i = 0; i < kEightParts; ++i) result.parts[i] = f(args.parts[i]...);
  return result;
}

HWY_INLINE Eight SetEight(float x) {
  Eight result;
#pragma GCC unroll 2
  for (int i = 0; i < kEightParts; ++i) result.parts[i] = hn::Set(EightTag(), x);
  return result;
}

// Loads the first `count` elements at p, at most eight. Sets the other lanes to `fill`. Reads nothing else.
HWY_INLINE Eight LoadEight(const float* p, int64_t count, float fill) {
  const EightTag d;
  Eight result;
#pragma GCC unroll 2
  for (int i = 0; i < kEightParts; ++i) {
    const int64_t left = count - i * kEightLanes;
    if (left >= kEightLanes) {
      result.parts[i] = hn::LoadU(d, p + i * kEightLanes);
    } else if (left <= 0) {
      result.parts[i] = hn::Set(d, fill);
    } else {
      result.parts[i] = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(left)), LoadPart(d, p + i * kEightLanes, left),
                                       hn::Set(d, fill));
    }
  }
  return result;
}

// Stores the first `count` elements to p.
HWY_INLINE void StoreEight(const Eight& x, float* p, int64_t count) {
#pragma GCC unroll 2
  for (int i = 0; i < kEightParts; ++i) {
    StoreUpTo(x.parts[i], EightTag(), p + i * kEightLanes, count - i * kEightLanes);
  }
}

// Sets all but the first `count` lanes to zero.
HWY_INLINE Eight KeepFirst(const Eight& x, int64_t count) {
  const EightTag d;
  Eight result;
#pragma GCC unroll 2
  for (int i = 0; i < kEightParts; ++i) {
    const int64_t left = std::max<int64_t>(0, std::min<int64_t>(kEightLanes, count - i * kEightLanes));
    result.parts[i] = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(left)), x.parts[i]);
  }
  return result;
}

HWY_INLINE Eight AddEight(const Eight& a, const Eight& b) {
  return MapEight([](auto x, auto y) HWY_ATTR { return hn::Add(x, y); }, a, b);
}

// ((x0+x4)+(x2+x6)) + ((x1+x5)+(x3+x7)).
HWY_INLINE float SumEight(const Eight& x) {
  alignas(32) float lanes[8];
#pragma GCC unroll 2
  for (int i = 0; i < kEightParts; ++i) hn::Store(x.parts[i], EightTag(), lanes + i * kEightLanes);
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Returns the largest lane. Ignores NaN except in the first lane.
HWY_INLINE float LargestOfEight(const Eight& x) {
  alignas(32) float lanes[8];
#pragma GCC unroll 2
  for (int i = 0; i < kEightParts; ++i) hn::Store(x.parts[i], EightTag(), lanes + i * kEightLanes);
  float largest = lanes[0];
  for (int i = 1; i < 8; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_EIGHT_INL_H_

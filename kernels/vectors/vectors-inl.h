// Vector operations that Highway lacks. Compiled once for each target.
#if defined(LOCKSTEP_KERNELS_VECTORS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_VECTORS_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_VECTORS_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_VECTORS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The target's widest vector of floats: 8, 16 or 4 lanes.
using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
inline constexpr int kFloatLanes = hn::MaxLanes(Floats());

// Loads the first `count` < Lanes elements at p. Sets the other lanes to zero. Reads nothing beyond the elements.
template <class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const hn::TFromD<D>* p, int64_t count) {
#if HWY_TARGET == HWY_NEON
  alignas(64) hn::TFromD<D> padded[hn::MaxLanes(d)] = {};
  std::memcpy(padded, p, static_cast<size_t>(count) * sizeof(*p));
  return hn::Load(d, padded);
#else
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
#endif
}

// Stores the first `count` < Lanes elements to p. Writes nothing beyond them.
template <class D>
HWY_INLINE void StorePart(hn::Vec<D> x, D d, hn::TFromD<D>* p, int64_t count) {
#if HWY_TARGET == HWY_NEON
  alignas(64) hn::TFromD<D> padded[hn::MaxLanes(d)];
  hn::Store(x, d, padded);
  std::memcpy(p, padded, static_cast<size_t>(count) * sizeof(*p));
#else
  hn::BlendedStore(x, hn::FirstN(d, static_cast<size_t>(count)), d, p);
#endif
}

// LoadPart and StorePart for any `count`: all lanes if it is at least Lanes, none if it is not positive.
template <class D>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const hn::TFromD<D>* p, int64_t count) {
  if (count >= static_cast<int64_t>(hn::MaxLanes(d))) return hn::LoadU(d, p);
  return count > 0 ? LoadPart(d, p, count) : hn::Zero(d);
}
template <class D>
HWY_INLINE void StoreUpTo(hn::Vec<D> x, D d, hn::TFromD<D>* p, int64_t count) {
  if (count >= static_cast<int64_t>(hn::MaxLanes(d))) {
    hn::StoreU(x, d, p);
  } else if (count > 0) {
    StorePart(x, d, p, count);
  }
}

// y[i] = f(x[i]) for vectors of elements; y may be x.
template <class F>
HWY_INLINE void Transform(int64_t size, const float* x, float* y, F f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kFloatLanes <= size; i += kFloatLanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < size) StorePart(f(LoadPart(d, x + i, size - i)), d, y + i, size - i);
}

// z[i] = f(x[i], y[i]); z may be x or y.
template <class F>
HWY_INLINE void Transform(int64_t size, const float* x, const float* y, float* z, F f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kFloatLanes <= size; i += kFloatLanes) {
    hn::StoreU(f(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, z + i);
  }
  if (i < size) StorePart(f(LoadPart(d, x + i, size - i), LoadPart(d, y + i, size - i)), d, z + i, size - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_VECTORS_INL_H_

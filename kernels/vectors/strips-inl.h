// Loops over the columns of a row-major matrix in strips of a few vectors, so that a strip's sums stay in registers
// across all rows. Compiled once for each target.
#if defined(LOCKSTEP_KERNELS_VECTORS_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_STRIPS_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_STRIPS_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_STRIPS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// A strip of kVectors vectors, all of whose columns are inside the matrix.
template <int kCount>
struct FullStrip {
  static constexpr int kVectors = kCount;
  int64_t column;
  HWY_INLINE FloatVector Load(const float* row, int v) const {
    return hn::LoadU(Floats(), row + column + v * kFloatLanes);
  }
  HWY_INLINE void Store(FloatVector x, float* row, int v) const {
    hn::StoreU(x, Floats(), row + column + v * kFloatLanes);
  }
};

// A strip of the last columns, of which there are fewer than a vector has lanes. The other lanes read 0 and are not
// written.
struct PartStrip {
  static constexpr int kVectors = 1;
  int64_t column;
  int64_t count;
  HWY_INLINE FloatVector Load(const float* row, int) const { return LoadPart(Floats(), row + column, count); }
  HWY_INLINE void Store(FloatVector x, float* row, int) const { StorePart(x, Floats(), row + column, count); }
};

// Calls body(strip) for strips that cover [0, columns), each of at most kMost vectors. kMost must be 4 or 8.
template <int kMost = 4, typename Body>
HWY_INLINE void ForEachStrip(int64_t columns, Body body) {
  int64_t column = 0;
  if constexpr (kMost == 8) {
    for (; column + 8 * kFloatLanes <= columns; column += 8 * kFloatLanes) body(FullStrip<8>{column});
  }
  for (; column + 4 * kFloatLanes <= columns; column += 4 * kFloatLanes) body(FullStrip<4>{column});
  for (; column + 2 * kFloatLanes <= columns; column += 2 * kFloatLanes) body(FullStrip<2>{column});
  for (; column + kFloatLanes <= columns; column += kFloatLanes) body(FullStrip<1>{column});
  if (column < columns) body(PartStrip{column, columns - column});
}

// A strip of one row, in registers.
template <int kVectors>
struct StripVectors {
  HWY_INLINE StripVectors() {}  // Not initialized.
  HWY_INLINE FloatVector operator[](int v) const { return vectors[v]; }
  FloatVector vectors[kVectors];
};
template <typename Strip>
HWY_INLINE StripVectors<Strip::kVectors> LoadStrip(const Strip& strip, const float* row) {
  StripVectors<Strip::kVectors> result;
#pragma GCC unroll 8
  for (int v = 0; v < Strip::kVectors; ++v) result.vectors[v] = strip.Load(row, v);
  return result;
}
template <int kVectors>
HWY_INLINE StripVectors<kVectors> ZeroStrip() {
  StripVectors<kVectors> result;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) result.vectors[v] = hn::Zero(Floats());
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_STRIPS_INL_H_

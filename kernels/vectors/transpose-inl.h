// Transposed copies of matrices. Compiled once for each target.
#if defined(LOCKSTEP_KERNELS_VECTORS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_TRANSPOSE_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_TRANSPOSE_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_TRANSPOSE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// Side length, in elements, of the squares that are transposed in registers: two 128-bit blocks, or one.
inline constexpr int kSquare = HWY_TARGET == HWY_NEON ? 4 : 8;

// to[j * to_stride + i] = from[i * from_stride + j] for i, j < kSquare.
HWY_INLINE void TransposeSquare(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, kSquare> d;
  const hn::Repartition<double, decltype(d)> d64;
  using V = hn::Vec<decltype(d)>;
  V r[kSquare], s[kSquare];
#pragma GCC unroll 8
  for (int i = 0; i < kSquare; ++i) r[i] = hn::LoadU(d, from + i * from_stride);
#pragma GCC unroll 4
  for (int i = 0; i < kSquare; i += 2) {
    s[i] = hn::InterleaveLower(d, r[i], r[i + 1]);
    s[i + 1] = hn::InterleaveUpper(d, r[i], r[i + 1]);
  }
  // Exchanges pairs of floats. Afterwards r[i] holds, in each 128-bit block, one column of four rows.
#pragma GCC unroll 2
  for (int i = 0; i < kSquare; i += 4) {
    const auto pair = [&](int k) HWY_ATTR { return hn::BitCast(d64, s[i + k]); };
    r[i] = hn::BitCast(d, hn::InterleaveLower(d64, pair(0), pair(2)));
    r[i + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, pair(0), pair(2)));
    r[i + 2] = hn::BitCast(d, hn::InterleaveLower(d64, pair(1), pair(3)));
    r[i + 3] = hn::BitCast(d, hn::InterleaveUpper(d64, pair(1), pair(3)));
  }
#if HWY_TARGET == HWY_NEON
  for (int i = 0; i < 4; ++i) hn::StoreU(r[i], d, to + i * to_stride);
#else
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    hn::StoreU(hn::ConcatLowerLower(d, r[i + 4], r[i]), d, to + i * to_stride);
    hn::StoreU(hn::ConcatUpperUpper(d, r[i + 4], r[i]), d, to + (i + 4) * to_stride);
  }
#endif
}

// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns.
HWY_INLINE void TransposeMatrix(int64_t rows, int64_t columns, const float* from, int64_t from_stride, float* to,
                                int64_t to_stride) {
  const int64_t whole_rows = rows / kSquare * kSquare;
  const int64_t whole_columns = columns / kSquare * kSquare;
  for (int64_t i = 0; i < whole_rows; i += kSquare) {
    for (int64_t j = 0; j < whole_columns; j += kSquare) {
      TransposeSquare(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_TRANSPOSE_INL_H_

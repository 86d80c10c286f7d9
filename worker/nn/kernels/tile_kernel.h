#ifndef LOCKSTEP_WORKER_NN_KERNELS_TILE_KERNEL_H_
#define LOCKSTEP_WORKER_NN_KERNELS_TILE_KERNEL_H_

#include <cstdint>

#include "lockstep/worker/nn/kernels/simd.h"

// The inner loop of all matrix products and convolutions. Every sum is one chain of fused multiply-adds in the order
// of the elements, whatever stands next to it: its bits do not depend on where a matrix is cut into tiles, on what was
// copied together beforehand, on the number of threads or on the processor's caches.
//
// Why not Eigen's product: its order of summation follows from the sizes of the matrices and of the caches, its
// kernels differ between versions, and it copies both operands for each call. Measured on one AVX2 core (AMD Zen 3),
// the products of an MLP with batch 64 ran at 85-88 GFLOP/s here and at 78-87 there, those with 10 columns at 40-42 and
// at 22-43, the patches of a convolution at 86 and at 78 (not counting the copy of the patches that Eigen needs).
namespace lockstep {

// Rows and columns of a tile: 6 x 16 sums fill 12 of the 16 vector registers.
inline constexpr int kTileRows = 6;
inline constexpr int kTileColumns = 2 * kLanes;

inline int64_t NumPanels(int64_t columns) { return (columns + kTileColumns - 1) / kTileColumns; }

// Where the elements of a tile's rows stand: `runs` runs of `length` elements, `step` floats apart;
// the runs are `run_stride` floats apart.
struct TileElements {
  int64_t runs = 1;
  int64_t length = 0;
  int64_t step = 1;
  int64_t run_stride = 0;
};

// sums[r][c] = sum over the elements e, from the first to the last, of rows[r][e] * panel[e][c], where panel's rows of
// 16 columns are `panel_stride` floats apart. Calls store(r, sums of columns 0-7, of columns 8-15) for r < Rows.
template <int Rows = kTileRows, typename Store>
inline void MultiplyTile(const TileElements& elements, const float* const* rows, const float* panel,
                         int64_t panel_stride, Store store) {
  F32x8 sums[Rows][2] = {};
  const int64_t step = elements.step;
  const int64_t end = elements.length * step;
  for (int64_t run = 0; run < elements.runs; ++run) {
    const float* a[Rows];
    for (int r = 0; r < Rows; ++r) a[r] = rows[r] + run * elements.run_stride;
    for (int64_t e = 0; e < end; e += step, panel += panel_stride) {
      const F32x8 low = Load8(panel);
      const F32x8 high = Load8(panel + kLanes);
#pragma GCC unroll 6
      for (int r = 0; r < Rows; ++r) {
        const F32x8 x = _mm256_broadcast_ss(a[r] + e);
        sums[r][0] = MultiplyAdd8(x, low, sums[r][0]);
        sums[r][1] = MultiplyAdd8(x, high, sums[r][1]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) store(r, sums[r][0], sums[r][1]);
}

// The first `count` of 16 columns at p, the others untouched.
inline void StoreColumns(float* p, int64_t count, F32x8 low, F32x8 high) {
  if (count >= kTileColumns) {
    Store8(p, low);
    Store8(p + kLanes, high);
  } else if (count >= kLanes) {
    Store8(p, low);
    if (count > kLanes) StorePart8(p + kLanes, count - kLanes, high);
  } else {
    StorePart8(p, count, low);
  }
}

// The same, added to what is there.
inline void AddColumns(float* p, int64_t count, F32x8 low, F32x8 high) {
  if (count >= kTileColumns) {
    StoreColumns(p, count, Load8(p) + low, Load8(p + kLanes) + high);
  } else if (count >= kLanes) {
    StoreColumns(p, count, Load8(p) + low, LoadPart8(p + kLanes, count - kLanes) + high);
  } else {
    StorePart8(p, count, LoadPart8(p, count) + low);
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_TILE_KERNEL_H_

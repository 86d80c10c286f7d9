// The inner loop of all matrix products and convolutions. Compiled once for each target. Every sum is one chain of
// fused multiply-adds in the order of the elements, independent of the sums next to it. Its bits therefore do not
// depend on where a matrix is split into tiles, on the vector width, on the number of threads or on the processor's
// caches.
#if defined(LOCKSTEP_KERNELS_VECTORS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_VECTORS_TILE_INL_H_
#undef LOCKSTEP_KERNELS_VECTORS_TILE_INL_H_
#else
#define LOCKSTEP_KERNELS_VECTORS_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "lockstep/kernels/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// A tile's sums, two vectors per row, fill the registers except for a row of the panel and one number. AVX2 has 16
// registers, the other targets have 32.
inline constexpr int kMostTileRows = HWY_TARGET == HWY_AVX2 ? 6 : 14;
inline constexpr int kPanelColumns = 2 * kFloatLanes;
// Number of elements in the body of the inner loop. With only 16 registers, GCC would move and spill sums between
// elements if there were several.
inline constexpr int kUnrolled = HWY_TARGET == HWY_AVX2 ? 1 : 4;

// The rows of a tile in memory: element e of row r is data[r * stride + e * step].
struct TileRows {
  const float* data;
  int64_t stride;
  int64_t step;
};

// The columns of a tile in memory: rows of kPanelColumns (or kFloatLanes) floats, `stride` apart. A tile that copies
// them writes them to `copy`, row by row.
struct TilePanel {
  const float* data;
  int64_t stride;
  float* copy = nullptr;
};

// Number of elements of the inner dimension per prefetched row of kPanelColumns floats. This spreads memory requests
// over the computation.
inline constexpr int kAheadElements = 4;

// Rows of kPanelColumns floats to prefetch: `count` rows first, then as many as time permits.
struct Ahead {
  const float* first;
  int64_t first_stride;
  int64_t count;
  const float* then;
  int64_t then_stride;

  // Prefetches the next row.
  HWY_INLINE void Ask() {
    constexpr int kLineFloats = 16;
#pragma GCC unroll 2
    for (int i = 0; i < kPanelColumns; i += kLineFloats) __builtin_prefetch(first + i, 0, 2);
    first += first_stride;
    --count;
  }
};

// The destination of the sums. `columns` sums of each row are added to its contents or replace them.
struct TileResult {
  float* data;
  int64_t stride;
  int64_t columns;
  bool add;
};

template <int kRows, int kVectors>
HWY_INLINE void ClearSums(FloatVector (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(Floats());
  }
}

// Continues the chains: for e = 0 ... depth - 1, sums[r][v] becomes rows(r, e) * panel(e, lanes of v) + sums[r][v],
// rounded once. If kAdjacent, rows.stride is 1, otherwise rows.step is 1. If kCopies, copies the panel.
template <int kRows, int kVectors, bool kAdjacent, bool kPrefetches, bool kCopies = false>
HWY_INLINE void AddToTile(int64_t depth, const TileRows& rows, const TilePanel& panel, Ahead ahead,
                          FloatVector (&sums)[kRows][kVectors]) {
  const Floats d;
  // Each pointer serves three rows, because an address operand can add the stride once or twice.
  constexpr int kGroups = kAdjacent ? 1 : (kRows + 2) / 3;
  const float* from[kGroups];
#pragma GCC unroll 5
  for (int g = 0; g < kGroups; ++g) from[g] = rows.data + 3 * g * rows.stride;
  const float* columns = panel.data;
  float* copy = panel.copy;
  const auto add = [&]() HWY_ATTR __attribute__((always_inline)) {
    FloatVector column[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      column[v] = hn::LoadU(d, columns + v * kFloatLanes);
      if constexpr (kCopies) hn::Store(column[v], d, copy + v * kFloatLanes);
    }
    if constexpr (kCopies) copy += kVectors * kFloatLanes;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float* p = kAdjacent ? from[0] + r : from[r / 3] + r % 3 * rows.stride;
      const FloatVector x = hn::Set(d, *p);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, column[v], sums[r][v]);
    }
#pragma GCC unroll 5
    for (int g = 0; g < kGroups; ++g) from[g] += kAdjacent ? rows.step : 1;
    columns += panel.stride;
  };
  if constexpr (kPrefetches) {
    while (ahead.count > 1 + depth / kAheadElements) ahead.Ask();
  }
  if (!kPrefetches && depth >= 16) {
#pragma GCC unroll kUnrolled
    for (int64_t e = 0; e < depth; ++e) add();
    return;
  }
  int64_t e = 0;
  for (; e + kAheadElements <= depth; e += kAheadElements) {
    if constexpr (kPrefetches) {
      ahead.Ask();
      if (ahead.count == 0) {
        ahead.first = ahead.then;
        ahead.first_stride = ahead.then_stride;
      }
    }
#pragma GCC unroll kUnrolled
    for (int i = 0; i < kAheadElements; ++i) add();
  }
  for (; e < depth; ++e) add();
}

// A separate function so that the compiler can use all registers for the sums.
template <int kRows, int kVectors, bool kAdjacent, bool kCopies>
HWY_NOINLINE void MultiplyTile(int64_t depth, const TileRows& rows, const TilePanel& panel, const Ahead& ahead,
                               const TileResult& result) {
  const Floats d;
  FloatVector sums[kRows][kVectors];
  ClearSums(sums);
  AddToTile<kRows, kVectors, kAdjacent, true, kCopies>(depth, rows, panel, ahead, sums);
  const bool whole = result.columns >= kVectors * kFloatLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    float* const to = result.data + r * result.stride;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* const p = to + v * kFloatLanes;
      if (whole) {
        hn::StoreU(result.add ? hn::Add(hn::LoadU(d, p), sums[r][v]) : sums[r][v], d, p);
      } else {
        const int64_t count = result.columns - v * kFloatLanes;
        StoreUpTo(result.add ? hn::Add(LoadUpTo(d, p, count), sums[r][v]) : sums[r][v], d, p, count);
      }
    }
  }
}

// Calls MultiplyTile for `count` rows.
template <int kVectors, bool kAdjacent, bool kCopies, int kRows = kMostTileRows>
HWY_INLINE void MultiplyRows(int64_t count, int64_t depth, const TileRows& rows, const TilePanel& panel,
                             const Ahead& ahead, const TileResult& result) {
  if constexpr (kRows > 0) {
    if (count == kRows) return MultiplyTile<kRows, kVectors, kAdjacent, kCopies>(depth, rows, panel, ahead, result);
    MultiplyRows<kVectors, kAdjacent, kCopies, kRows - 1>(count, depth, rows, panel, ahead, result);
  }
}

// Computes the chains of rows whose elements are `runs` runs of `depth`, run_stride apart. The panel continues from run
// to run.
template <int kRows, int kVectors, bool kAdjacent>
HWY_INLINE void SumRuns(int64_t runs, int64_t run_stride, int64_t depth, TileRows rows, const float* panel,
                        FloatVector (&sums)[kRows][kVectors]) {
  ClearSums(sums);
  for (int64_t run = 0; run < runs; ++run, rows.data += run_stride, panel += depth * kPanelColumns) {
    AddToTile<kRows, kVectors, kAdjacent, false>(depth, rows, {panel, kPanelColumns}, {}, sums);
  }
}

// Like SumRuns, but for rows at arbitrary addresses. Element e of a run in row r is rows[r][run * run_stride + e *
// step].
template <int kRows, int kVectors>
HWY_INLINE void SumScatteredRuns(int64_t runs, int64_t run_stride, int64_t depth, int64_t step,
                                 const float* const* rows, const float* panel, FloatVector (&sums)[kRows][kVectors]) {
  const Floats d;
  const float* from[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) from[r] = rows[r];
  ClearSums(sums);
  for (int64_t run = 0; run < runs; ++run) {
    const int64_t end = run * run_stride + depth * step;
    for (int64_t at = run * run_stride; at < end; at += step, panel += kPanelColumns) {
      FloatVector column[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) column[v] = hn::LoadU(d, panel + v * kFloatLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const FloatVector x = hn::Set(d, from[r][at]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, column[v], sums[r][v]);
      }
    }
  }
}

// Splits `all_rows` rows into tiles of nearly equal size.
struct RowTiles {
  explicit RowTiles(int64_t all_rows)
      : count((all_rows + kMostTileRows - 1) / kMostTileRows),
        least(count == 0 ? 0 : all_rows / count),
        longer(count == 0 ? 0 : all_rows % count) {}
  // The first row of tile `i`; begin(count) is the total number of rows.
  int64_t begin(int64_t i) const { return i * least + std::min(i, longer); }
  int64_t size(int64_t i) const { return least + (i < longer ? 1 : 0); }

  int64_t count;
  int64_t least;
  // Number of tiles with one row more than `least`.
  int64_t longer;
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_KERNELS_VECTORS_TILE_INL_H_

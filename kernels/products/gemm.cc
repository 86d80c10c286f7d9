#include "lockstep/kernels/products/gemm.h"

#include <algorithm>
#include <cstdint>

#include "lockstep/kernels/vectors/scratch.h"
#include "lockstep/kernels/vectors/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/products/gemm.cc"
// Must come before the other Highway headers.
#include "hwy/foreach_target.h"
#include "lockstep/kernels/vectors/panel-inl.h"
#include "lockstep/kernels/vectors/tile-inl.h"
#include "lockstep/kernels/vectors/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

// Maximum number of products that are summed before the sum is added to the result. A panel with this many rows stays
// in a cache near the core. Changing it changes the low-order bits of the results.
constexpr int64_t kMaxDepth = 400;
// Maximum number of rows of matrix `a` whose copies stay in the second-level cache.
constexpr int64_t kBlockRows = 192;
// With fewer tiles of rows, a panel is reused too rarely to be worth copying.
constexpr int64_t kRowTilesWorthPacking = 2;
// With fewer panels, a transposed row of a is reused too rarely to be worth copying.
constexpr int64_t kPanelsWorthPacking = 4;

// Number of columns packed together. The rows of b are far apart, so packing several panels at once reads more than one
// cache line per page.
constexpr int64_t kGroupColumns = 64;
// A block of the inner dimension.
struct Depth {
  int64_t begin;
  int64_t size;
};

// Copies rows of a transposed matrix, tile by tile. Tile i is [depth.size][tiles.size(i)] and begins at copy +
// tiles.begin(i) * depth.size.
void PackRows(const Matrix& a, const Depth& depth, int64_t row, const RowTiles& tiles, float* copy) {
  constexpr int kRowVectors = (kMostTileRows + kFloatLanes - 1) / kFloatLanes;
  const Floats d;
  for (int64_t i = 0; i < tiles.count; ++i) {
    const int64_t first = row + tiles.begin(i);
    const float* from = At(a, first, depth.begin);
    float* to = copy + tiles.begin(i) * depth.size;
    const int64_t size = tiles.size(i);
    if (first + kRowVectors * kFloatLanes <= a.rows) {
      // Copies a few elements too many, which the next copies overwrite.
      for (int64_t k = 0; k < depth.size; ++k, from += a.stride, to += size) {
        for (int v = 0; v < kRowVectors; ++v) hn::StoreU(hn::LoadU(d, from + v * kFloatLanes), d, to + v * kFloatLanes);
      }
    } else {
      for (int64_t k = 0; k < depth.size; ++k, from += a.stride, to += size) std::copy_n(from, size, to);
    }
  }
}

// The contribution of one block of the inner dimension to the part of c in `tile`, which has at most kBlockRows rows.
class DepthBlock {
 public:
  DepthBlock(const Matrix& a, const Matrix& b, const Depth& depth, const Tile& tile)
      : a_(a), b_(b), depth_(depth), tile_(tile), tiles_(tile.rows) {
    thread_local Scratch rows;
    thread_local Scratch panel;
    adjacent_ = a.transposed;
    packs_rows_ = a.transposed && tile.columns > kPanelsWorthPacking * kPanelColumns;
    if (packs_rows_) {
      rows_ = rows.Get(kBlockRows * kMaxDepth + 2 * kMostTileRows);
      PackRows(a, depth, tile.row, tiles_, rows_);
    }
    panel_ = panel.Get(kMaxDepth * kGroupColumns);
  }

  void Multiply(float* c, int64_t c_stride) {
    for (int64_t column = 0; column < tile_.columns; column += kGroupColumns) {
      const int64_t count = std::min<int64_t>(kGroupColumns, tile_.columns - column);
      MultiplyGroup(column, count, c + tile_.row * c_stride + tile_.column + column, c_stride);
    }
  }

 private:
  // Multiplies the panels of `count` columns, which are packed together.
  void MultiplyGroup(int64_t column, int64_t count, float* c, int64_t c_stride) {
    // If b's columns can be read in place, a panel's first tile copies the panel for the other tiles.
    const bool in_place = !b_.transposed && count % kPanelColumns == 0;
    if (!in_place) {
      PackPanelsOf(b_, depth_.begin, depth_.size, tile_.column + column, count, depth_.size * kPanelColumns, panel_);
    }
    for (int64_t first = 0; first < count; first += kPanelColumns) {
      asked_ = 0;
      TilePanel panel{panel_ + first * depth_.size, kPanelColumns};
      if (in_place) panel = {At(b_, depth_.begin, tile_.column + column + first), b_.stride, panel_};
      MultiplyPanel(column + first, std::min<int64_t>(kPanelColumns, count - first), panel, c + first, c_stride);
    }
  }

  void MultiplyPanel(int64_t column, int64_t count, TilePanel panel, float* c, int64_t c_stride) {
    for (int64_t i = 0; i < tiles_.count; ++i) {
      const bool copies = panel.copy != nullptr && i == 0 && tiles_.count >= kRowTilesWorthPacking;
      if (panel.copy != nullptr && i == 1) panel = {panel.copy, kPanelColumns};
      const TileResult result{c + tiles_.begin(i) * c_stride, c_stride, count, depth_.begin > 0};
      const Ahead ahead = AheadOf(i, column, c, c_stride);
      const int64_t size = tiles_.size(i);
      const TileRows rows = Rows(i);
      if (copies) {
        if (adjacent_) {
          MultiplyRows<2, true, true>(size, depth_.size, rows, panel, ahead, result);
        } else {
          MultiplyRows<2, false, true>(size, depth_.size, rows, panel, ahead, result);
        }
      } else if (count > kFloatLanes) {
        if (adjacent_) {
          MultiplyRows<2, true, false>(size, depth_.size, rows, panel, ahead, result);
        } else {
          MultiplyRows<2, false, false>(size, depth_.size, rows, panel, ahead, result);
        }
      } else if (adjacent_) {
        MultiplyRows<1, true, false>(size, depth_.size, rows, panel, ahead, result);
      } else {
        MultiplyRows<1, false, false>(size, depth_.size, rows, panel, ahead, result);
      }
    }
  }

  TileRows Rows(int64_t i) const {
    if (packs_rows_) return {rows_ + tiles_.begin(i) * depth_.size, 1, tiles_.size(i)};
    const float* first = At(a_, tile_.row + tiles_.begin(i), depth_.begin);
    return a_.transposed ? TileRows{first, 1, a_.stride} : TileRows{first, a_.stride, 1};
  }

  // Prefetches the result of tile i + 1, then as many of the next panel's rows as time permits.
  Ahead AheadOf(int64_t i, int64_t column, const float* c, int64_t c_stride) {
    const float* const result = c + tiles_.begin(i + 1) * c_stride;
    const int64_t count = std::max<int64_t>(1, i + 1 < tiles_.count ? tiles_.size(i + 1) : 0);
    const int64_t next = column + kPanelColumns;
    if (b_.transposed || next >= tile_.columns || asked_ >= depth_.size) return {result, c_stride, count, result, 0};
    const float* const panel = At(b_, depth_.begin + asked_, tile_.column + next);
    asked_ += std::max<int64_t>(0, depth_.size / kAheadElements - count);
    return {result, c_stride, count, panel, b_.stride};
  }

  const Matrix& a_;
  const Matrix& b_;
  const Depth depth_;
  const Tile tile_;
  const RowTiles tiles_;
  bool adjacent_;
  bool packs_rows_;
  float* rows_ = nullptr;
  float* panel_;
  // Number of the next panel's rows that have been prefetched.
  int64_t asked_ = 0;
};

// `tile` must have at most kBlockRows rows.
void MultiplyBlocks(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride) {
  const int64_t blocks = (a.columns + kMaxDepth - 1) / kMaxDepth;
  const int64_t size = (a.columns + blocks - 1) / blocks;
  for (int64_t begin = 0; begin < a.columns; begin += size) {
    DepthBlock(a, b, {begin, std::min(size, a.columns - begin)}, tile).Multiply(c, c_stride);
  }
}

// Multiplies in blocks of rows of nearly equal size.
void MultiplyRowBlocks(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride) {
  const int64_t blocks = (tile.rows + kBlockRows - 1) / kBlockRows;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t begin = tile.rows * i / blocks;
    const int64_t end = tile.rows * (i + 1) / blocks;
    MultiplyBlocks(a, b, {tile.row + begin, tile.column, end - begin, tile.columns}, c, c_stride);
  }
}

// Transposing b requires copying all of it. If b is larger than a and c together, a and c are transposed instead.
bool TransposesResult(const Matrix& a, const Matrix& b, const Tile& tile) {
  return !a.transposed && b.transposed && tile.rows * (a.columns + tile.columns) < a.columns * tile.columns;
}

// Computes the transpose of the tile, b' a', and transposes it into c.
void MultiplyTransposed(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride) {
  thread_local Scratch scratch;
  float* const result = scratch.Get(tile.rows * tile.columns);
  const Matrix rows{At(b, 0, tile.column), tile.columns, b.rows, b.stride, false};
  const Matrix columns{At(a, tile.row, 0), a.columns, tile.rows, a.stride, true};
  MultiplyRowBlocks(rows, columns, {0, 0, tile.columns, tile.rows}, result, tile.rows);
  TransposeMatrix(tile.columns, tile.rows, result, tile.rows, c + tile.row * c_stride + tile.column, c_stride);
}

void MultiplyAnyPart(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride) {
  if (TransposesResult(a, b, tile)) {
    MultiplyTransposed(a, b, tile, c, c_stride);
  } else {
    MultiplyRowBlocks(a, b, tile, c, c_stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

HWY_EXPORT(MultiplyAnyPart);

void Multiply(const Matrix& a, const Matrix& b, float* c, int64_t c_stride) {
  MultiplyPart(a, b, {0, 0, a.rows, b.columns}, c, c_stride);
}

void MultiplyPart(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride) {
  if (a.columns == 0) {
    for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      std::fill_n(c + row * c_stride + tile.column, tile.columns, 0.0f);
    }
    return;
  }
  HWY_DYNAMIC_DISPATCH(MultiplyAnyPart)(a, b, tile, c, c_stride);
}

}  // namespace lockstep
#endif  // HWY_ONCE

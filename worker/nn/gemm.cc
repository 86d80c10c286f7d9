#include "worker/nn/gemm.h"

#include <algorithm>

#include "worker/nn/tile_kernel.h"
#include "worker/nn/workspace.h"

namespace lockstep {
namespace {

// Products that are summed before they are added to the result: a panel of that many rows stays in the first-level
// cache. The bits depend on it.
constexpr int64_t kMaxDepth = 400;
// Rows of a that are used again for each panel stay in the second-level cache: a multiple of kTileRows.
constexpr int64_t kBlockRows = 192;
// Columns of a tile of ParallelMultiply, a multiple of kTileColumns.
constexpr int64_t kBlockColumns = 256;
// With fewer rows a panel is used so seldom that it is not worth a copy.
constexpr int64_t kRowsWorthPacking = 2 * kTileRows;
// With fewer columns a transposed row of a is used so seldom that it is not worth a copy.
constexpr int64_t kColumnsWorthPacking = 4 * kTileColumns;

// A block of the inner dimension.
struct Depth {
  int64_t begin;
  int64_t size;
};

// Transposes 8 x 8: row i of the result, 16 floats apart, is column i of the input.
void Transpose8(const float* from, int64_t from_stride, float* to) {
  __m256 r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * kTileColumns, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * kTileColumns, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// panel[k][j] = b(depth.begin + k, column + j), zeros beyond the last column.
void PackPanel(const Matrix& b, const Depth& depth, int64_t column, float* panel) {
  const int64_t count = std::min<int64_t>(kTileColumns, b.columns - column);
  const int64_t column_step = b.transposed ? b.stride : 1;
  const int64_t row_step = b.transposed ? 1 : b.stride;
  const float* from = b.data + depth.begin * row_step + column * column_step;
  int64_t k = 0;
  if (count == kTileColumns && !b.transposed) {
    for (; k < depth.size; ++k) {
      Store8(panel + k * kTileColumns, Load8(from + k * row_step));
      Store8(panel + k * kTileColumns + kLanes, Load8(from + k * row_step + kLanes));
    }
  } else if (count == kTileColumns) {
    for (; k + kLanes <= depth.size; k += kLanes) {
      Transpose8(from + k, column_step, panel + k * kTileColumns);
      Transpose8(from + k + kLanes * column_step, column_step, panel + k * kTileColumns + kLanes);
    }
  }
  for (; k < depth.size; ++k) {
    float* row = panel + k * kTileColumns;
    for (int64_t j = 0; j < kTileColumns; ++j) row[j] = j < count ? from[k * row_step + j * column_step] : 0.0f;
  }
}

// The rows of one tile, and how their elements are spaced.
struct TileRows {
  const float* rows[kTileRows];
  int64_t step;
};

// A block of rows of `a`: where each tile's elements stand, in place or in a copy.
class RowBlock {
 public:
  RowBlock(const Matrix& a, const Depth& depth, int64_t row, int64_t rows, bool pack, float* copy)
      : a_(a), depth_(depth), row_(row), rows_(rows), copy_(pack ? copy : nullptr) {
    if (!pack) return;
    for (int64_t first = 0; first < rows; first += kTileRows) {
      const TileRows tile = InPlace(first);
      float* to = copy + first * depth.size;
      for (int64_t k = 0; k < depth.size; ++k, to += kTileRows) {
        for (int r = 0; r < kTileRows; ++r) to[r] = tile.rows[r][k * tile.step];
      }
    }
  }

  // The tile that begins at row `first` of the block; rows beyond the last repeat it.
  TileRows Tile(int64_t first) const {
    if (copy_ == nullptr) return InPlace(first);
    TileRows tile;
    tile.step = kTileRows;
    for (int r = 0; r < kTileRows; ++r) tile.rows[r] = copy_ + first * depth_.size + r;
    return tile;
  }

 private:
  TileRows InPlace(int64_t first) const {
    const int64_t row_step = a_.transposed ? 1 : a_.stride;
    const int64_t column_step = a_.transposed ? a_.stride : 1;
    TileRows tile;
    tile.step = column_step;
    for (int r = 0; r < kTileRows; ++r) {
      tile.rows[r] = a_.data + (row_ + std::min(first + r, rows_ - 1)) * row_step + depth_.begin * column_step;
    }
    return tile;
  }

  const Matrix& a_;
  const Depth& depth_;
  const int64_t row_;
  const int64_t rows_;
  const float* const copy_;
};

// The part of c in `tile`, for one block of the inner dimension.
void MultiplyDepth(const Matrix& a, const Matrix& b, const Depth& depth, const Tile& tile, float* c, int64_t c_stride) {
  alignas(64) float packed[kMaxDepth * kTileColumns];
  thread_local Workspace<float> copy;
  const bool pack_rows = a.transposed && tile.columns > kColumnsWorthPacking;
  const TileElements all{1, depth.size, 1, 0};
  const RowBlock block(a, depth, tile.row, tile.rows, pack_rows,
                       pack_rows ? copy.Get((kBlockRows + kTileRows) * kMaxDepth) : nullptr);
  for (int64_t column = tile.column; column < tile.column + tile.columns; column += kTileColumns) {
    const int64_t columns = std::min<int64_t>(kTileColumns, tile.column + tile.columns - column);
    const bool in_place = !b.transposed && columns == kTileColumns && tile.rows < kRowsWorthPacking;
    if (!in_place) PackPanel(b, depth, column, packed);
    const float* panel = in_place ? b.data + depth.begin * b.stride + column : packed;
    for (int64_t first = 0; first < tile.rows; first += kTileRows) {
      const TileRows rows = block.Tile(first);
      TileElements elements = all;
      elements.step = rows.step;
      float* to = c + (tile.row + first) * c_stride + column;
      const int64_t count = tile.rows - first;
      MultiplyTile(elements, rows.rows, panel, in_place ? b.stride : kTileColumns, [&](int r, Float8 low, Float8 high) {
        if (r >= count) return;
        if (depth.begin == 0) {
          StoreColumns(to + r * c_stride, columns, low, high);
        } else {
          AddColumns(to + r * c_stride, columns, low, high);
        }
      });
    }
  }
}

// `tile` has at most kBlockRows rows.
void MultiplyOneTile(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride) {
  const int64_t blocks = (a.columns + kMaxDepth - 1) / kMaxDepth;
  const int64_t size = (a.columns + blocks - 1) / blocks;
  for (int64_t begin = 0; begin < a.columns; begin += size) {
    MultiplyDepth(a, b, {begin, std::min(size, a.columns - begin)}, tile, c, c_stride);
  }
}

}  // namespace

void Multiply(const Matrix& a, const Matrix& b, float* c, int64_t c_stride) {
  for (int64_t row = 0; row < a.rows; row += kBlockRows) {
    MultiplyOneTile(a, b, {row, 0, std::min(kBlockRows, a.rows - row), b.columns}, c, c_stride);
  }
}

void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride,
                      absl::FunctionRef<void(const Tile&)> finish) {
  const int64_t row_blocks = (a.rows + kBlockRows - 1) / kBlockRows;
  const int64_t column_blocks = (b.columns + kBlockColumns - 1) / kBlockColumns;
  compute->ParallelFor(row_blocks * column_blocks, [&](int64_t block) {
    Tile tile;
    tile.row = block / column_blocks * kBlockRows;
    tile.column = block % column_blocks * kBlockColumns;
    tile.rows = std::min(kBlockRows, a.rows - tile.row);
    tile.columns = std::min(kBlockColumns, b.columns - tile.column);
    MultiplyOneTile(a, b, tile, c, c_stride);
    finish(tile);
  });
}

void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride) {
  ParallelMultiply(compute, a, b, c, c_stride, [](const Tile&) {});
}

void PackPanels(const Matrix& b, float* panels) {
  for (int64_t column = 0; column < b.columns; column += kTileColumns, panels += b.rows * kTileColumns) {
    PackPanel(b, {0, b.rows}, column, panels);
  }
}

}  // namespace lockstep

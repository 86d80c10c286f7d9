#include "lockstep/worker/nn/kernels/gemm.h"

#include <algorithm>

#include "lockstep/worker/nn/kernels/tile_kernel.h"
#include "lockstep/worker/nn/kernels/workspace.h"

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

// panel[k][j] = b(depth.begin + k, column + j), and anything beyond the last column.
void PackPanel(const Matrix& b, const Depth& depth, int64_t column, float* panel) {
  const int64_t count = std::min<int64_t>(kTileColumns, b.columns - column);
  const int64_t column_step = b.transposed ? b.stride : 1;
  const int64_t row_step = b.transposed ? 1 : b.stride;
  const float* from = b.data + depth.begin * row_step + column * column_step;
  int64_t k = 0;
  if (!b.transposed) {
    // A row may be read beyond its last column if another row follows.
    const int64_t elements = (b.rows - 1) * b.stride + b.columns;
    const int64_t whole = (elements - column - kTileColumns) / b.stride + 1 - depth.begin;
    const int64_t end = elements < column + kTileColumns ? 0 : std::min(depth.size, whole);
    for (; k < end; ++k) {
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

// Rows [row, row + rows) of `a`: where they begin, in place or in a copy, and the distance of their elements.
// Rows beyond the last, up to a whole tile, repeat it.
class RowBlock {
 public:
  RowBlock(const Matrix& a, const Depth& depth, int64_t row, int64_t rows, bool copy) {
    const int64_t row_step = a.transposed ? 1 : a.stride;
    step_ = a.transposed ? a.stride : 1;
    const float* begin = a.data + row * row_step + depth.begin * step_;
    if (copy) begin = Copy(a, depth, row, rows, begin);
    for (int64_t r = 0; r < rows + kTileRows - 1; ++r) {
      const int64_t from = std::min(r, rows - 1);
      rows_[r] = copy ? begin + from / kTileRows * kTileRows * depth.size + from % kTileRows : begin + from * row_step;
    }
  }

  const float* const* rows(int64_t first) const { return rows_ + first; }
  int64_t step() const { return step_; }

 private:
  // The rows of each tile next to each other, element by element: [tiles][depth][6].
  const float* Copy(const Matrix& a, const Depth& depth, int64_t row, int64_t rows, const float* from) {
    thread_local Workspace<float> copy;
    float* const begin = copy.Get((kBlockRows + 2 * kTileRows) * kMaxDepth);
    for (int64_t first = 0; first < rows; first += kTileRows) {
      float* to = begin + first * depth.size;
      const float* p = from + first;
      if (row + first + kLanes <= a.rows) {
        // Two elements too many; the next ones replace them.
        for (int64_t k = 0; k < depth.size; ++k) Store8(to + k * kTileRows, Load8(p + k * step_));
        continue;
      }
      const int64_t count = std::min<int64_t>(kTileRows, rows - first);
      for (int64_t k = 0; k < depth.size; ++k) std::copy_n(p + k * step_, count, to + k * kTileRows);
    }
    step_ = kTileRows;
    return begin;
  }

  const float* rows_[kBlockRows + kTileRows];
  int64_t step_;
};

// Where one tile goes: `rows` rows (at most those of the tile count) and `columns` columns; adds to it unless it is the
// first block of the inner dimension.
struct TileResult {
  float* c;
  int64_t stride;
  int64_t rows;
  int64_t columns;
  bool first;
};

void ComputeWholeTile(const TileElements& elements, const float* const* rows, const float* panel, int64_t panel_stride,
                      const TileResult& result) {
  MultiplyTile(elements, rows, panel, panel_stride, [&](int r, F32x8 low, F32x8 high) {
    float* to = result.c + r * result.stride;
    Store8(to, result.first ? low : Load8(to) + low);
    Store8(to + kLanes, result.first ? high : Load8(to + kLanes) + high);
  });
}

template <int Rows>
void ComputeEdgeTile(const TileElements& elements, const float* const* rows, const float* panel, int64_t panel_stride,
                     const TileResult& result) {
  MultiplyTile<Rows>(elements, rows, panel, panel_stride, [&](int r, F32x8 low, F32x8 high) {
    if (r >= result.rows) return;
    if (result.first) {
      StoreColumns(result.c + r * result.stride, result.columns, low, high);
    } else {
      AddColumns(result.c + r * result.stride, result.columns, low, high);
    }
  });
}

void ComputeTile(const TileElements& elements, const float* const* rows, const float* panel, int64_t panel_stride,
                 const TileResult& result) {
  if (result.rows >= kTileRows && result.columns == kTileColumns) {
    ComputeWholeTile(elements, rows, panel, panel_stride, result);
  } else if (result.rows > 4) {
    ComputeEdgeTile<kTileRows>(elements, rows, panel, panel_stride, result);
  } else if (result.rows > 2) {
    ComputeEdgeTile<4>(elements, rows, panel, panel_stride, result);
  } else {
    ComputeEdgeTile<2>(elements, rows, panel, panel_stride, result);
  }
}

// The part of c in `tile`, for one block of the inner dimension.
void MultiplyDepth(const Matrix& a, const Matrix& b, const Depth& depth, const Tile& tile, float* c, int64_t c_stride) {
  alignas(64) float packed[kMaxDepth * kTileColumns];
  const RowBlock block(a, depth, tile.row, tile.rows, a.transposed && tile.columns > kColumnsWorthPacking);
  const TileElements elements{1, depth.size, block.step(), 0};
  for (int64_t column = 0; column < tile.columns; column += kTileColumns) {
    const int64_t columns = std::min<int64_t>(kTileColumns, tile.columns - column);
    const bool in_place = !b.transposed && columns == kTileColumns && tile.rows < kRowsWorthPacking;
    if (!in_place) PackPanel(b, depth, tile.column + column, packed);
    const float* panel = in_place ? b.data + depth.begin * b.stride + tile.column + column : packed;
    const int64_t panel_stride = in_place ? b.stride : kTileColumns;
    for (int64_t row = 0; row < tile.rows; row += kTileRows) {
      float* to = c + (tile.row + row) * c_stride + tile.column + column;
      ComputeTile(elements, block.rows(row), panel, panel_stride,
                  {to, c_stride, tile.rows - row, columns, depth.begin == 0});
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

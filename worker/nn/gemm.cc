#include "worker/nn/gemm.h"

#include <algorithm>

#include "Eigen/Core"

namespace lockstep {
namespace {

// Cache sizes in bytes that Eigen derives its blocking from: those of no machine in particular. The bits of
// a product depend on them, so changing one changes the results of every run.
constexpr std::ptrdiff_t kLevel1 = 32 << 10;
constexpr std::ptrdiff_t kLevel2 = 512 << 10;
constexpr std::ptrdiff_t kLevel3 = 4 << 20;

// The largest tile: 256 x 512 floats are 512 KiB. Larger tiles pack the operands less often.
constexpr int64_t kTileRows = 256;
constexpr int64_t kTileColumns = 256;

void PinCacheSizes() {
  static const bool pinned = [] {
    Eigen::setCpuCacheSizes(kLevel1, kLevel2, kLevel3);
    return true;
  }();
  (void)pinned;
}

using RowMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColumnMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
template <typename M>
using StridedMap = Eigen::Map<M, Eigen::Unaligned, Eigen::OuterStride<>>;

template <typename A, typename B>
void MultiplyMaps(const A& a, const B& b, float* c, int64_t c_stride, bool accumulate) {
  StridedMap<RowMajorMatrix> result(c, a.rows(), b.cols(), Eigen::OuterStride<>(c_stride));
  if (accumulate) {
    result.noalias() += a * b;
  } else {
    result.noalias() = a * b;
  }
}

// Calls f with an Eigen map of `m`.
template <typename F>
void WithMap(const Matrix& m, F f) {
  const Eigen::OuterStride<> stride(m.stride);
  if (m.transposed) {
    f(StridedMap<const ColumnMajorMatrix>(m.data, m.rows, m.columns, stride));
  } else {
    f(StridedMap<const RowMajorMatrix>(m.data, m.rows, m.columns, stride));
  }
}

// Rows [row, row + rows) and columns [column, column + columns) of `m`.
Matrix Part(const Matrix& m, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  Matrix part = m;
  part.data += m.transposed ? column * m.stride + row : row * m.stride + column;
  part.rows = rows;
  part.columns = columns;
  return part;
}

}  // namespace

void Multiply(const Matrix& a, const Matrix& b, float* c, int64_t c_stride, bool accumulate) {
  PinCacheSizes();
  WithMap(a, [&](const auto& a_map) {
    WithMap(b, [&](const auto& b_map) { MultiplyMaps(a_map, b_map, c, c_stride, accumulate); });
  });
}

void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride,
                      absl::FunctionRef<void(const Tile&)> finish) {
  const int64_t row_tiles = (a.rows + kTileRows - 1) / kTileRows;
  const int64_t column_tiles = (b.columns + kTileColumns - 1) / kTileColumns;
  compute->ParallelFor(row_tiles * column_tiles, [&](int64_t block) {
    Tile tile;
    tile.row = block / column_tiles * kTileRows;
    tile.column = block % column_tiles * kTileColumns;
    tile.rows = std::min(kTileRows, a.rows - tile.row);
    tile.columns = std::min(kTileColumns, b.columns - tile.column);
    Multiply(Part(a, tile.row, tile.rows, 0, a.columns), Part(b, 0, b.rows, tile.column, tile.columns),
             c + tile.row * c_stride + tile.column, c_stride);
    finish(tile);
  });
}

void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride) {
  ParallelMultiply(compute, a, b, c, c_stride, [](const Tile&) {});
}

}  // namespace lockstep

#include "lockstep/worker/nn/compute/gemm.h"

#include <algorithm>

#include "lockstep/kernels/products/gemm.h"

namespace lockstep {
namespace {

// Maximum size of a tile if there are several threads.
constexpr int64_t kBlockRows = 192;
constexpr int64_t kBlockColumns = 256;

// Returns where block `i` begins if [0, size) is split into `blocks` blocks as evenly as possible.
int64_t BlockBegin(int64_t size, int64_t blocks, int64_t i) { return size * i / blocks; }

}  // namespace

void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride,
                      absl::FunctionRef<void(const Tile&)> finish) {
  const int64_t row_blocks = (a.rows + kBlockRows - 1) / kBlockRows;
  // A single thread packs a's rows once for all columns.
  const int64_t block_columns = compute->threads() == 1 ? std::max<int64_t>(1, b.columns) : kBlockColumns;
  const int64_t column_blocks = (b.columns + block_columns - 1) / block_columns;
  compute->ParallelFor(row_blocks * column_blocks, [&](int64_t block) {
    Tile tile;
    tile.row = BlockBegin(a.rows, row_blocks, block / column_blocks);
    tile.rows = BlockBegin(a.rows, row_blocks, block / column_blocks + 1) - tile.row;
    tile.column = block % column_blocks * block_columns;
    tile.columns = std::min(block_columns, b.columns - tile.column);
    MultiplyPart(a, b, tile, c, c_stride);
    finish(tile);
  });
}

void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride) {
  ParallelMultiply(compute, a, b, c, c_stride, [](const Tile&) {});
}

}  // namespace lockstep

#ifndef LOCKSTEP_WORKER_NN_KERNELS_GEMM_H_
#define LOCKSTEP_WORKER_NN_KERNELS_GEMM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "lockstep/worker/nn/kernels/compute_context.h"

namespace lockstep {

// A matrix of floats in memory, rows x columns. Element (r, c) is data[r * stride + c], or
// data[c * stride + r] when `transposed`. A value type that owns nothing.
struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
  bool transposed = false;
};

// Row-major, without gaps.
inline Matrix RowMajor(const float* data, int64_t rows, int64_t columns) {
  return {data, rows, columns, columns, false};
}
// The transpose of a row-major [columns, rows] array without gaps.
inline Matrix Transposed(const float* data, int64_t rows, int64_t columns) { return {data, rows, columns, rows, true}; }

// A rectangle of a result.
struct Tile {
  int64_t row = 0;
  int64_t column = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

// c := a b on one thread; c is row-major with `c_stride`, a.columns must be b.rows. Each element is
// a sum of blocks of at most 400 products, all blocks equally long except the last; within a block the order is that of
// tile_kernel.h. So an element's bits follow from its row of a and its column of b alone.
void Multiply(const Matrix& a, const Matrix& b, float* c, int64_t c_stride);

// The same on all threads of `compute`, in tiles; finish(tile), where the caller adds the bias and applies the
// activation, follows each tile at once, while it is in the cache. Tiles begin at multiples of 16 columns.
void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride,
                      absl::FunctionRef<void(const Tile& tile)> finish);
void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride);

// Row-major panels of 16 columns of b: [NumPanels(b.columns)][b.rows][16], with anything beyond the last column.
void PackPanels(const Matrix& b, float* panels);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_GEMM_H_

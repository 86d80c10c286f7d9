#ifndef LOCKSTEP_KERNELS_VECTORS_MATRIX_H_
#define LOCKSTEP_KERNELS_VECTORS_MATRIX_H_

#include <cstdint>

namespace lockstep {

// A matrix of floats in memory, rows x columns. Element (r, c) is data[r * stride + c], or data[c * stride + r] if
// `transposed` is true. A value type that owns nothing.
struct Matrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stride = 0;
  bool transposed = false;
};

// Returns a row-major matrix without gaps.
inline Matrix RowMajor(const float* data, int64_t rows, int64_t columns) {
  return {data, rows, columns, columns, false};
}
// Returns the transpose of a row-major [columns, rows] array without gaps.
inline Matrix Transposed(const float* data, int64_t rows, int64_t columns) { return {data, rows, columns, rows, true}; }

// A rectangular part of a result.
struct Tile {
  int64_t row = 0;
  int64_t column = 0;
  int64_t rows = 0;
  int64_t columns = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_MATRIX_H_

#ifndef LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_
#define LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_

#include "lockstep/kernels/vectors/matrix.h"

namespace lockstep {

// Computes c := a b on one thread. c is row-major with `c_stride`, and a.columns must be b.rows. Each element is a sum
// of blocks of at most 400 products. All blocks except the last have the same length. Each block is one chain of fused
// multiply-adds, and a sum of no products is zero. On every target, an element's bits therefore depend only on its row
// of a and its column of b.
void Multiply(const Matrix& a, const Matrix& b, float* c, int64_t c_stride);

// Like Multiply, but only for the elements in `tile`. `c` is the address of element (0, 0).
void MultiplyPart(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_

#ifndef LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_
#define LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_

#include "lockstep/kernels/vectors/matrix.h"

namespace lockstep {

// c := a b on one thread; c is row-major with `c_stride`, a.columns must be b.rows. Each element is a sum of blocks of
// at most 400 products, all blocks equally long except the last; a block is one chain of fused multiply-adds, and a sum
// of no products is zero. An element's bits therefore depend only on its row of a and its column of b, on every target.
void Multiply(const Matrix& a, const Matrix& b, float* c, int64_t c_stride);

// Multiply for the elements in `tile` only; c is the address of element (0, 0).
void MultiplyPart(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_

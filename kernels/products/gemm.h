#ifndef LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_
#define LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_

#include "lockstep/kernels/vectors/matrix.h"

namespace lockstep {

// c := a b on one thread; c is row-major with `c_stride`, a.columns must be b.rows. Each element is
// a sum of blocks of at most 400 products, all blocks equally long except the last; within a block it is one chain of
// fused multiply-adds; one of no products is zero. So an element's bits follow from its row of a and its column of b
// alone, on every target.
void Multiply(const Matrix& a, const Matrix& b, float* c, int64_t c_stride);

// The same for the elements in `tile`; c is where element (0, 0) would stand.
void MultiplyPart(const Matrix& a, const Matrix& b, const Tile& tile, float* c, int64_t c_stride);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_PRODUCTS_GEMM_H_

#ifndef LOCKSTEP_KERNELS_NN_LAYER_NORM_H_
#define LOCKSTEP_KERNELS_NN_LAYER_NORM_H_

#include <cstdint>

namespace lockstep {

// The loops of layer normalization over row-major [rows, columns] matrices. A sum along a row has 32 parts. Of the
// first columns / 32 * 32 elements, element c is added to part c % 32; each later element is added to part c % 8. The
// parts then form four groups of eight, whose j-th parts are added as (p0 + p1) + (p2 + p3). The resulting eight sums
// are added as ((s0+s4)+(s2+s6)) + ((s1+s5)+(s3+s7)).

// The moments of each row, [rows] each: the mean and 1 / sqrt(variance + epsilon).
struct RowMoments {
  const float* means;
  const float* inverses;
};

// y = (x - mean) * inverse * gamma + beta, with one fused multiply-add for gamma and beta. Also writes the rows'
// moments.
void NormalizeRows(int64_t rows, int64_t columns, float epsilon, const float* gamma, const float* beta, const float* x,
                   float* means, float* inverses, float* y);

// With xhat = (x - mean) * inverse, g = dy * gamma, and means over the row: dx = inverse * (g - mean(g) - xhat * mean(g
// * xhat)). dx may be dy.
void NormalizeRowsGradient(int64_t rows, int64_t columns, const float* gamma, const RowMoments& moments, const float* x,
                           const float* dy, float* dx);

// products[c] = the sum of dy * xhat, a chain of fused multiply-adds, and sums[c] = the sum of dy, both in row order.
void SumRowNormGradients(int64_t rows, int64_t columns, const RowMoments& moments, const float* x, const float* dy,
                         float* products, float* sums);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_LAYER_NORM_H_

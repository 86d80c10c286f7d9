#ifndef LOCKSTEP_KERNELS_NN_LAYER_NORM_H_
#define LOCKSTEP_KERNELS_NN_LAYER_NORM_H_

#include <cstdint>

namespace lockstep {

// The loops of layer normalization over row-major [rows, columns] matrices. A sum along a row has 32 parts: element c
// of the first columns / 32 * 32 belongs to part c % 32, each later one to part c % 8. Part j of every fourth of the 32
// is then added as (p0 + p1) + (p2 + p3), and the eight sums as ((s0+s4)+(s2+s6)) + ((s1+s5)+(s3+s7)).

// The moments of each row: its mean, and 1 / sqrt(variance + epsilon). [rows] each.
struct RowMoments {
  const float* means;
  const float* inverses;
};

// y = (x - mean) inverse gamma + beta, the last two in one fused multiply-add. Writes the moments of the rows.
void NormalizeRows(int64_t rows, int64_t columns, float epsilon, const float* gamma, const float* beta, const float* x,
                   float* means, float* inverses, float* y);

// With xhat = (x - mean) inverse and g = dy gamma, means over the row: dx = inverse (g - mean(g) - xhat mean(g xhat)).
// dx may be dy.
void NormalizeRowsGradient(int64_t rows, int64_t columns, const float* gamma, const RowMoments& moments, const float* x,
                           const float* dy, float* dx);

// products[c] = the sum of dy xhat, a chain of fused multiply-adds; sums[c] = the sum of dy. Row after row.
void SumRowNormGradients(int64_t rows, int64_t columns, const RowMoments& moments, const float* x, const float* dy,
                         float* products, float* sums);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_LAYER_NORM_H_

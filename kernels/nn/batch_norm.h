#ifndef LOCKSTEP_KERNELS_NN_BATCH_NORM_H_
#define LOCKSTEP_KERNELS_NN_BATCH_NORM_H_

#include <cstdint>

#include "lockstep/kernels/vectors/activation_type.h"

namespace lockstep {

// The loops of batch normalization over row-major [rows, columns] matrices, one column per channel. Sums are in row
// order.

// means[c] = the mean of column c of x, squares[c] = the sum of the squared distances from it. `rows` must be at least
// 1.
void ColumnMeansAndSquares(int64_t rows, int64_t columns, const float* x, float* means, float* squares);

// The numbers that normalize each channel, [columns] each: z = (x - mean) scale + shift, in one fused multiply-add.
struct ChannelNumbers {
  const float* mean;
  const float* scale;
  const float* shift;
};

// y = f(z).
void NormalizeColumns(const ActivationKernel& f, int64_t rows, int64_t columns, const ChannelNumbers& channels,
                      const float* x, float* y);

// The value from which the activation's gradient is computed, and where dz = dy f'(z) is stored.
enum class NormGradientMode {
  kFromInput,           // from z; dz is not kept
  kFromInputAndStore,   // from z; dz replaces dy
  kFromOutputAndStore,  // from y; dz replaces dy
};

// products[c] = the sum of dz (x - mean), a chain of fused multiply-adds, and sums[c] = the sum of dz. Only
// kFromOutputAndStore reads `y`.
void SumNormGradients(const ActivationKernel& f, NormGradientMode mode, int64_t rows, int64_t columns,
                      const ChannelNumbers& channels, const float* x, const float* y, float* dy, float* products,
                      float* sums);

// dx = scale dz - ((x - mean) slope + offset), with one fused multiply-add for the term in parentheses. dz = dy f'(z);
// if dy already holds dz, pass the identity as `f`. dx may be dy.
void NormInputGradient(const ActivationKernel& f, int64_t rows, int64_t columns, const ChannelNumbers& channels,
                       const float* offset, const float* slope, const float* x, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_BATCH_NORM_H_

#ifndef LOCKSTEP_KERNELS_NN_ACTIVATION_H_
#define LOCKSTEP_KERNELS_NN_ACTIVATION_H_

#include <cstdint>

#include "lockstep/kernels/vectors/activation_type.h"

namespace lockstep {

// y[i] = f(x[i]); y may be x.
void ApplyActivation(const ActivationKernel& f, int64_t size, const float* x, float* y);

// For each of `rows` rows of `columns` elements, `stride` apart in sum and y: sum[c] += bias[c], unless bias is null,
// then y[c] = f(sum[c]). y may be `sum`, which then holds only the values of f.
void AddBiasAndActivateRows(const ActivationKernel& f, int64_t rows, int64_t columns, int64_t stride, const float* bias,
                            float* sum, float* y);

// dx[i] = dy[i] f'(x[i]). `value` is x for kGelu, otherwise y = f(x); dx may be dy.
void ApplyActivationGradient(const ActivationKernel& f, int64_t size, const float* value, const float* dy, float* dx);

// Like ApplyActivationGradient for rows x columns elements. Unless `sums` is null, also sets sums[c] = the sum of
// column c of dx, in row order. Makes one pass. dx may be dy.
void ActivationGradientAndSums(const ActivationKernel& f, int64_t rows, int64_t columns, const float* value,
                               const float* dy, float* dx, float* sums);

// sums[c] = the sum of column c of x [rows, columns], in row order. `rows` must be at least 1.
void SumColumns(int64_t rows, int64_t columns, const float* x, float* sums);

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_NN_ACTIVATION_H_

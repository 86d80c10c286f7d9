#ifndef LOCKSTEP_WORKER_NN_COMPUTE_ACTIVATION_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_ACTIVATION_H_

#include <cstdint>

#include "lockstep/kernels/vectors/matrix.h"
#include "lockstep/worker/nn/compute/activation_function.h"

namespace lockstep {

// y[i] = f(x[i]); y may be x.
void Activate(const ActivationFunction& f, int64_t size, const float* x, float* y);

// Applies bias and f to the elements in `tile` of row-major matrices with row stride `stride`: sum(r, c) += bias[c],
// unless `bias` is null, and y(r, c) = f(sum(r, c)). y may be the same as `sum`, which then holds only the results of
// f.
void AddBiasAndActivate(const ActivationFunction& f, const Tile& tile, int64_t stride, const float* bias, float* sum,
                        float* y);

// dx[i] = dy[i] f'(x[i]). `value` is x if GradientNeedsInput(f), otherwise y; dx may be dy.
void ActivationGradient(const ActivationFunction& f, int64_t size, const float* value, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_ACTIVATION_H_

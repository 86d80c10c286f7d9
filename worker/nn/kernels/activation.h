#ifndef LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_H_
#define LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_H_

#include <cstdint>

#include "lockstep/worker/nn/kernels/activation_function.h"

namespace lockstep {

// y[i] = f(x[i]); y may be x.
void Activate(const ActivationFunction& f, int64_t size, const float* x, float* y);

// y[i] = f(x[i] + bias[i]); y may be x.
void AddBiasAndActivate(const ActivationFunction& f, int64_t size, const float* x, const float* bias, float* y);

// dx[i] = dy[i] f'(x[i]). `value` is x when GradientNeedsInput(f), else y; dx may be dy.
void ActivationGradient(const ActivationFunction& f, int64_t size, const float* value, const float* dy, float* dx);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_KERNELS_ACTIVATION_H_

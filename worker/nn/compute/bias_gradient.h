#ifndef LOCKSTEP_WORKER_NN_COMPUTE_BIAS_GRADIENT_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_BIAS_GRADIENT_H_

#include <cstdint>

#include "lockstep/worker/nn/compute/activation_function.h"
#include "lockstep/worker/nn/compute/compute_context.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {

// The backward pass of y = f(x + bias) for row-major [rows, columns] matrices, in one pass over memory: dx = dy f' (see
// ActivationGradient) and, unless `sums` is null, sums[c] = the sum of column c of dx. The rows of each fixed-size
// block are summed first, and then the blocks are added in order. dx may be dy.
class BiasGradient {
 public:
  void Compute(ComputeContext* compute, const ActivationFunction& f, int64_t rows, int64_t columns, const float* value,
               const float* dy, float* dx, float* sums);

 private:
  Workspace<float> partial_sums_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_BIAS_GRADIENT_H_

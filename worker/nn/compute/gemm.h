#ifndef LOCKSTEP_WORKER_NN_COMPUTE_GEMM_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_GEMM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "lockstep/kernels/vectors/matrix.h"
#include "lockstep/worker/nn/compute/compute_context.h"

namespace lockstep {

// Computes c := a b in tiles on all threads of `compute`, with results identical to those of Multiply
// (kernels/products/gemm.h). Calls finish(tile) after each tile, while the tile is still in the cache, so that the
// caller can add the bias and apply the activation.
void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride,
                      absl::FunctionRef<void(const Tile& tile)> finish);
void ParallelMultiply(ComputeContext* compute, const Matrix& a, const Matrix& b, float* c, int64_t c_stride);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_GEMM_H_

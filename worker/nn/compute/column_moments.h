#ifndef LOCKSTEP_WORKER_NN_COMPUTE_COLUMN_MOMENTS_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_COLUMN_MOMENTS_H_

#include <cstdint>

#include "lockstep/worker/nn/compute/compute_context.h"
#include "lockstep/worker/nn/compute/workspace.h"

namespace lockstep {

// Calculator of the mean and the biased variance, sum((x - mean)^2) / rows, of each column of a row-major [rows,
// columns] matrix. For each block of 256 rows, it computes the sum and then the sum of squared distances from the
// block's mean; the blocks are merged in order (Chan, Golub and LeVeque 1979). Keeps scratch memory between calls. Not
// thread-safe.
class ColumnMoments {
 public:
  // Overwrites mean and variance [columns]. `rows` must be at least 1.
  void Compute(ComputeContext* compute, int64_t rows, int64_t columns, const float* x, float* mean, float* variance);

 private:
  // [blocks, 2, columns]: means, then squares.
  Workspace<float> blocks_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_COLUMN_MOMENTS_H_

#ifndef LOCKSTEP_WORKER_DATA_BATCH_H_
#define LOCKSTEP_WORKER_DATA_BATCH_H_

#include <cstdint>

#include "lockstep/common/tensor/tensor.h"

namespace lockstep {

// Examples that are processed together. The first dimension of every tensor is the number of examples.
struct Batch {
  int64_t size = 0;
  // DT_FLOAT [size, ...], or DT_INT32 ids [size, length] for embeddings.
  Tensor features;
  // DT_INT32 [size] classes, or DT_FLOAT [size, outputs] targets.
  Tensor labels;
  // DT_FLOAT [size]. If empty, every example has weight 1.
  Tensor weights;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_BATCH_H_

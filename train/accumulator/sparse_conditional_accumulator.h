#ifndef LOCKSTEP_TRAIN_ACCUMULATOR_SPARSE_CONDITIONAL_ACCUMULATOR_H_
#define LOCKSTEP_TRAIN_ACCUMULATOR_SPARSE_CONDITIONAL_ACCUMULATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/accumulator/accumulator.h"

namespace lockstep::train {

// Rows of a tensor, the others being zero, as TensorFlow's IndexedSlices. Copies share the memory of the tensors.
struct IndexedSlices {
  Tensor indices;  // int64 [n]: the numbers of the rows
  Tensor values;   // [n, ...]: the rows
  // The dimensions of the whole tensor; PartialShape::kUnknown if one is not known. Empty if none is.
  std::vector<int64_t> dense_shape;
};

// TensorFlow's SparseConditionalAccumulator: an Accumulator of rows. In a gradient, rows may have any order, and those
// with the same number count as one, their sum; a gradient without rows counts as a gradient. A take returns the rows
// by ascending number. The mean divides each row by the number of gradients that had it, not by the number of all
// gradients.
//
// AccumulatorOptions::shape is that of the whole tensor. Rows must be below its first dimension, and the values must
// have its other dimensions; they may have further ones. Among the gradients of one take, the dimensions of the values
// after the first must be equal. A dense shape of a gradient must begin with the declared one. The dense shape of a
// take has the declared first dimension, which may be unknown, and the others of the values.
class SparseConditionalAccumulator : public Accumulator<IndexedSlices> {
 public:
  // InvalidArgument: an option is not valid.
  static absl::StatusOr<std::unique_ptr<SparseConditionalAccumulator>> Create(const AccumulatorOptions& options);

 private:
  using Accumulator::Accumulator;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_ACCUMULATOR_SPARSE_CONDITIONAL_ACCUMULATOR_H_

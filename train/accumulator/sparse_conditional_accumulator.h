#ifndef LOCKSTEP_TRAIN_ACCUMULATOR_SPARSE_CONDITIONAL_ACCUMULATOR_H_
#define LOCKSTEP_TRAIN_ACCUMULATOR_SPARSE_CONDITIONAL_ACCUMULATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/accumulator/accumulator.h"

namespace lockstep::train {

// Some rows of a tensor whose other rows are zero, as in TensorFlow's IndexedSlices. Copies share the tensors' memory.
struct IndexedSlices {
  Tensor indices;  // int64 [n]: the row numbers
  Tensor values;   // [n, ...]: the rows
  // The dimensions of the whole tensor, with PartialShape::kUnknown for an unknown one. Empty if none is known.
  std::vector<int64_t> dense_shape;
};

// TensorFlow's SparseConditionalAccumulator: an Accumulator of gradients that consist of rows. The rows of a gradient
// may be in any order; rows with the same number are summed and count as one. A gradient without rows still counts as a
// gradient. A take returns the rows in ascending order of their numbers. The mean divides each row by the number of
// gradients that had it, not by the number of all gradients.
//
// AccumulatorOptions::shape is the shape of the whole tensor. Row numbers must be less than its first dimension. The
// values must have its other dimensions, and may have more. Within one take, the dimensions of the values after the
// first must be the same for all gradients. A gradient's dense shape must begin with the declared one. The dense shape
// that a take returns has the declared first dimension, which may be unknown, followed by the remaining dimensions of
// the values.
class SparseConditionalAccumulator : public Accumulator<IndexedSlices> {
 public:
  // Returns InvalidArgument if an option is invalid.
  static absl::StatusOr<std::unique_ptr<SparseConditionalAccumulator>> Create(const AccumulatorOptions& options);

 private:
  using Accumulator::Accumulator;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_ACCUMULATOR_SPARSE_CONDITIONAL_ACCUMULATOR_H_

#ifndef LOCKSTEP_TRAIN_ACCUMULATOR_CONDITIONAL_ACCUMULATOR_H_
#define LOCKSTEP_TRAIN_ACCUMULATOR_CONDITIONAL_ACCUMULATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/train/accumulator/accumulator.h"

namespace lockstep::train {

// TensorFlow's ConditionalAccumulator: an Accumulator of dense gradients. A gradient must have the declared type and
// shape. If part of the shape is unknown, the first gradient after a take fixes it until the next take. The mean is the
// sum, in call order, divided by the number of gradients.
class ConditionalAccumulator : public Accumulator<Tensor> {
 public:
  // Returns InvalidArgument if an option is invalid.
  static absl::StatusOr<std::unique_ptr<ConditionalAccumulator>> Create(const AccumulatorOptions& options);

 private:
  using Accumulator::Accumulator;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_ACCUMULATOR_CONDITIONAL_ACCUMULATOR_H_

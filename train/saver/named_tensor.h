#ifndef LOCKSTEP_TRAIN_SAVER_NAMED_TENSOR_H_
#define LOCKSTEP_TRAIN_SAVER_NAMED_TENSOR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep::train {

// A variable's name and value, as a Saver saves and restores it. A run's trained variables are float32, and its
// global_step is an int64 scalar; a Saver can save any type of fixed size. Copies share the value's memory.
struct NamedTensor {
  std::string name;
  Tensor value;
};

// Returns a float32 tensor with row-major `values`. Returns InvalidArgument if their number does not match the shape.
absl::StatusOr<NamedTensor> NamedFloats(std::string name, absl::Span<const int64_t> shape,
                                        absl::Span<const float> values);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_NAMED_TENSOR_H_

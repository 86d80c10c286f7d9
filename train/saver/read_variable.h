#ifndef LOCKSTEP_TRAIN_SAVER_READ_VARIABLE_H_
#define LOCKSTEP_TRAIN_SAVER_READ_VARIABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/tensor_reader.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep::train {

// Reads `key` as the value of a variable that a model declares. With `reshape`, the checkpoint's value may have a
// different shape with the same number of elements; the result has the variable's shape. A variable without a type is
// float32.
// Errors: NotFound for an absent key; InvalidArgument naming both types and shapes, or as for CheckBools; DataLoss for
// damaged data.
absl::StatusOr<Tensor> ReadVariable(const TensorReader& reader, const std::string& key,
                                    const v1::VariableSpec& variable, bool reshape);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_READ_VARIABLE_H_

#ifndef LOCKSTEP_SERVER_PS_READ_VARIABLE_H_
#define LOCKSTEP_SERVER_PS_READ_VARIABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/tensor_reader.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// The shape of a variable that ParameterLayout::Create accepted.
Shape ShapeOf(const v1::VariableSpec& spec);

// Reads what `reader` holds under `key`, the variable's values or an array of its shape, into `out`, which has room for
// all its elements. Errors: those of CheckStoredVariable and of the reader.
absl::Status ReadVariable(const TensorReader& reader, absl::string_view key, const ParameterLayout::Variable& variable,
                          float* out);
// The same without looking at type and shape: the key holds float32 and as many elements.
absl::Status ReadElements(const TensorReader& reader, absl::string_view key, const ParameterLayout::Variable& variable,
                          float* out);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_READ_VARIABLE_H_

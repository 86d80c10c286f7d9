#include "lockstep/train/saver/read_variable.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep::train {

absl::StatusOr<Tensor> ReadVariable(const TensorReader& reader, const std::string& key,
                                    const v1::VariableSpec& variable, bool reshape) {
  ASSIGN_OR_RETURN(Shape shape, Shape::Create(variable.shape()));
  ASSIGN_OR_RETURN(const TensorReader::Entry entry, reader.Describe(key));
  const v1::DataType dtype = VariableType(variable.dtype());
  const bool fits = entry.shape == shape || (reshape && entry.shape.num_elements() == shape.num_elements());
  if (entry.dtype != dtype || SizeOf(dtype) == 0 || !fits) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint ", reader.prefix(), ": ", key, " is ",
                                                   NameOf(entry.dtype), entry.shape.ToString(), ", the variable ",
                                                   variable.name(), " is ", NameOf(dtype), shape.ToString()));
  }
  Tensor value(dtype, std::move(shape));
  RETURN_IF_ERROR(reader.ReadInto(key, absl::MakeSpan(value.data(), entry.bytes)));
  if (dtype == v1::DT_BOOL) RETURN_IF_ERROR(CheckBools(reader, key, value.bytes()));
  return value;
}

}  // namespace lockstep::train

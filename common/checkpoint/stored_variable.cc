#include "lockstep/common/checkpoint/stored_variable.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

absl::Status CheckStoredVariable(const TensorReader& checkpoint, absl::string_view key, v1::DataType dtype,
                                 const Shape& shape) {
  ASSIGN_OR_RETURN(const TensorReader::Entry entry, checkpoint.Describe(key));
  if (entry.dtype == v1::DT_FLOAT && dtype == v1::DT_FLOAT && entry.shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("checkpoint ", checkpoint.prefix(), ": ", key, " is ",
                                                 NameOf(entry.dtype), entry.shape.ToString(), ", the model declares ",
                                                 NameOf(dtype), shape.ToString()));
}

}  // namespace lockstep

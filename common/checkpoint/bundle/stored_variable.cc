#include "lockstep/common/checkpoint/bundle/stored_variable.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/bools.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {

absl::Status CheckStoredVariable(const TensorReader& checkpoint, absl::string_view key, v1::DataType dtype,
                                 const Shape& shape) {
  ASSIGN_OR_RETURN(const TensorReader::Entry entry, checkpoint.Describe(key));
  if (IsVariableType(dtype) && entry.dtype == dtype && entry.shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("checkpoint ", checkpoint.prefix(), ": ", key, " is ",
                                                 NameOf(entry.dtype), entry.shape.ToString(), ", the model declares ",
                                                 NameOf(dtype), shape.ToString()));
}

absl::Status CheckFinite(const TensorReader& checkpoint, absl::string_view key, absl::Span<const float> values) {
  const auto found = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (found == values.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("checkpoint ", checkpoint.prefix(), ": element ",
                                                 found - values.begin(), " of ", key, " is ", *found,
                                                 ", no run starts from values that are not finite"));
}

absl::Status CheckBools(const TensorReader& checkpoint, absl::string_view key, absl::string_view bytes) {
  if (AreBools(bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("checkpoint ", checkpoint.prefix(), ": ", key, " has a bool that is neither 0 nor 1"));
}

}  // namespace lockstep

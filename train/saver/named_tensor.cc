#include "lockstep/train/saver/named_tensor.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep::train {

absl::StatusOr<NamedTensor> NamedFloats(std::string name, absl::Span<const int64_t> shape,
                                        absl::Span<const float> values) {
  ASSIGN_OR_RETURN(Shape dims, Shape::Create(shape));
  if (static_cast<uint64_t>(dims.num_elements()) != values.size()) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", name, " of shape ", dims.ToString(), " has ",
                                                   values.size(), " values where ", dims.num_elements(),
                                                   " are expected"));
  }
  return NamedTensor{std::move(name), Tensor::FromValues<float>(std::move(dims), values)};
}

}  // namespace lockstep::train

#include "lockstep/train/hooks/base/fetched_value.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::train {
namespace {

std::string ElementText(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case v1::DT_FLOAT:
      return absl::StrCat(tensor.flat<float>()[i]);
    case v1::DT_DOUBLE:
      return absl::StrCat(tensor.flat<double>()[i]);
    case v1::DT_INT64:
      return absl::StrCat(tensor.flat<int64_t>()[i]);
    case v1::DT_INT32:
      return absl::StrCat(tensor.flat<int32_t>()[i]);
    case v1::DT_UINT8:
    case v1::DT_BOOL:
      return absl::StrCat(static_cast<int>(tensor.flat<uint8_t>()[i]));
    default:
      return v1::DataType_Name(tensor.dtype());
  }
}

}  // namespace

bool IsOfEveryRun(const std::string& name) { return name == "loss" || name == "global_step"; }

absl::StatusOr<Tensor> FetchedValue(const RunValues& values, const std::string& name) {
  if (name == "loss") return Tensor::FromValues<double>({}, {values.result.loss});
  if (name == "global_step") return Tensor::FromValues<int64_t>({}, {values.result.global_step});
  const auto found = values.fetched.find(name);
  if (found == values.fetched.end()) return absl::InternalError(absl::StrCat(name, " was not fetched"));
  return found->second.value;
}

std::string TensorText(const Tensor& tensor, int64_t shown) {
  const int64_t size = tensor.num_elements();
  if (shown < 0) shown = size;
  if (tensor.shape().rank() == 0 && size == 1) return ElementText(tensor, 0);
  std::string text = "[";
  for (int64_t i = 0; i < size && i < shown; ++i) absl::StrAppend(&text, i > 0 ? " " : "", ElementText(tensor, i));
  if (size > shown) absl::StrAppend(&text, shown > 0 ? " " : "", "... of shape ", tensor.shape().ToString());
  return text + "]";
}

}  // namespace lockstep::train

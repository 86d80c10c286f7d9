#include "lockstep/train/hooks/stop/nan_tensor_hook.h"

#include <algorithm>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/fetched_value.h"

namespace lockstep::train {
namespace {

template <typename T>
bool HasNan(absl::Span<const T> values) {
  return std::any_of(values.begin(), values.end(), [](T value) { return std::isnan(value); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<NanTensorHook>> NanTensorHook::Create(const NanTensorOptions& options) {
  if (options.tensor.empty()) {
    return absl::InvalidArgumentError("NanTensorHook's tensor is empty: give \"loss\" or a variable's name");
  }
  return absl::WrapUnique(new NanTensorHook(options));
}

absl::Status NanTensorHook::BeforeRun(RunContext& context) {
  if (!IsOfEveryRun(options_.tensor)) context.Fetch(options_.tensor);
  return absl::OkStatus();
}

absl::Status NanTensorHook::AfterRun(RunContext& context, const RunValues& values) {
  ASSIGN_OR_RETURN(const Tensor tensor, FetchedValue(values, options_.tensor));
  bool found = false;
  if (tensor.dtype() == v1::DT_DOUBLE) {
    found = HasNan(tensor.flat<double>());
  } else if (tensor.dtype() == v1::DT_FLOAT) {
    found = HasNan(tensor.flat<float>());
  } else {
    return absl::InvalidArgumentError(absl::StrCat(options_.tensor, " has whole numbers: they cannot be NaN"));
  }
  if (!found) return absl::OkStatus();
  const std::string what = absl::StrCat(options_.tensor, " is NaN at global step ", values.result.global_step);
  if (options_.fail_on_nan) return absl::InvalidArgumentError(what);
  LOG(WARNING) << what << ": the run is to end";
  context.RequestStop(what);
  return absl::OkStatus();
}

}  // namespace lockstep::train

#include "lockstep/worker/evaluation/model_values.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"

namespace lockstep {
namespace {

// Matches the name of the optimizer's state (server/optimizer/moving_average.cc).
constexpr char kMovingAverageSuffix[] = "/ExponentialMovingAverage";

bool HasAverage(const BundleReader& checkpoint, const v1::VariableSpec& variable) {
  return variable.trainable() && checkpoint.Contains(absl::StrCat(variable.name(), kMovingAverageSuffix));
}

}  // namespace

ModelValues::ModelValues(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  for (const Tensor& tensor : tensors_) pointers_.push_back(reinterpret_cast<const float*>(tensor.bytes().data()));
}

absl::StatusOr<ModelValues> LoadModelValues(const BundleReader& checkpoint, const v1::ModelSpec& spec,
                                            ValueSource source) {
  // A run that keeps averages may keep none of some variables.
  const bool keeps_averages =
      absl::c_any_of(spec.variables(), [&](const auto& variable) { return HasAverage(checkpoint, variable); });
  std::vector<Tensor> tensors;
  for (const v1::VariableSpec& variable : spec.variables()) {
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Create({variable.shape().data(), static_cast<size_t>(variable.shape_size())}));
    const bool averaged = source == ValueSource::kMovingAverages && variable.trainable() &&
                          (!keeps_averages || HasAverage(checkpoint, variable));
    const std::string key = absl::StrCat(variable.name(), averaged ? kMovingAverageSuffix : "");
    if (!checkpoint.Contains(key)) {
      return absl::NotFoundError(absl::StrCat(
          "checkpoint ", checkpoint.prefix(), " lacks the model's ", averaged ? "moving average \"" : "variable \"",
          key, "\" ", shape.ToString(), averaged ? "; the run keeps none (optimizer.moving_average)" : ""));
    }
    RETURN_IF_ERROR(CheckStoredVariable(checkpoint, key, variable.dtype(), shape));
    ASSIGN_OR_RETURN(Tensor tensor, checkpoint.Read(key));
    tensors.push_back(std::move(tensor));
  }
  return ModelValues(std::move(tensors));
}

absl::StatusOr<int64_t> LoadGlobalStep(const BundleReader& checkpoint) {
  ASSIGN_OR_RETURN(const Tensor tensor, checkpoint.Read(kGlobalStepKey));
  if (tensor.num_elements() == 1 && tensor.dtype() == v1::DT_INT64) return tensor.flat<int64_t>()[0];
  if (tensor.num_elements() == 1 && tensor.dtype() == v1::DT_INT32) return tensor.flat<int32_t>()[0];
  return absl::InvalidArgumentError(absl::StrCat("\"", kGlobalStepKey, "\" is ", NameOf(tensor.dtype()), " ",
                                                 tensor.shape().ToString(), " in checkpoint ", checkpoint.prefix(),
                                                 ", must be an int64 scalar"));
}

}  // namespace lockstep

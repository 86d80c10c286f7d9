#include "worker/train/model_values.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr char kGlobalStep[] = "global_step";

}  // namespace

ModelValues::ModelValues(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  for (const Tensor& tensor : tensors_) pointers_.push_back(tensor.flat<float>().data());
}

absl::StatusOr<ModelValues> LoadModelValues(const BundleReader& checkpoint, const ModelSpec& spec) {
  std::vector<Tensor> tensors;
  for (const VariableSpec& variable : spec.variables()) {
    ASSIGN_OR_RETURN(const Shape shape,
                     Shape::Create({variable.shape().data(), static_cast<size_t>(variable.shape_size())}));
    if (!checkpoint.Contains(variable.name())) {
      return absl::NotFoundError(absl::StrCat("checkpoint ", checkpoint.prefix(), " lacks the model's variable \"",
                                              variable.name(), "\" ", shape.ToString()));
    }
    ASSIGN_OR_RETURN(const BundleReader::Entry entry, checkpoint.Describe(variable.name()));
    if (entry.dtype != DT_FLOAT || entry.dtype != variable.dtype() || entry.shape != shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.name(), "\" is ", NameOf(entry.dtype), " ", entry.shape.ToString(), " in checkpoint ",
          checkpoint.prefix(), ", but ", NameOf(variable.dtype()), " ", shape.ToString(), " in the model"));
    }
    ASSIGN_OR_RETURN(Tensor tensor, checkpoint.Read(variable.name()));
    tensors.push_back(std::move(tensor));
  }
  return ModelValues(std::move(tensors));
}

absl::StatusOr<int64_t> LoadGlobalStep(const BundleReader& checkpoint) {
  ASSIGN_OR_RETURN(const Tensor tensor, checkpoint.Read(kGlobalStep));
  if (tensor.num_elements() == 1 && tensor.dtype() == DT_INT64) return tensor.flat<int64_t>()[0];
  if (tensor.num_elements() == 1 && tensor.dtype() == DT_INT32) return tensor.flat<int32_t>()[0];
  return absl::InvalidArgumentError(absl::StrCat("\"", kGlobalStep, "\" is ", NameOf(tensor.dtype()), " ",
                                                 tensor.shape().ToString(), " in checkpoint ", checkpoint.prefix(),
                                                 ", must be an int64 scalar"));
}

}  // namespace lockstep

#include "lockstep/worker/nn/losses/loss.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/worker/nn/losses/elementwise_loss.h"
#include "lockstep/worker/nn/losses/softmax_loss.h"

namespace lockstep {
namespace {

absl::Status CheckWeights(const Batch& batch) {
  if (batch.weights.dtype() == v1::DT_INVALID) return absl::OkStatus();
  if (batch.weights.dtype() == v1::DT_FLOAT && batch.weights.shape() == Shape{batch.size}) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weights are ", NameOf(batch.weights.dtype()), " ",
                                                 batch.weights.shape().ToString(), ", but the batch needs float32 [",
                                                 batch.size, "]"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LossOp>> CreateLoss(const config::v1::Loss& config, const std::string& input,
                                                   const Shape& output_shape, const ExampleSpec& examples) {
  if (config.has_weight() && !std::isfinite(config.weight())) {
    return absl::InvalidArgumentError(absl::StrCat("the loss of layer '", input, "' has weight ", config.weight()));
  }
  switch (config.kind_case()) {
    case config::v1::Loss::kSoftmaxCrossEntropy:
      return MakeSoftmaxLoss(config, input, output_shape, examples);
    case config::v1::Loss::KIND_NOT_SET:
      return absl::InvalidArgumentError(absl::StrCat("the loss of layer '", input, "' has no kind"));
    default:
      return MakeElementwiseLoss(config, input, output_shape, examples);
  }
}

absl::Status CheckLabels(const Batch& batch, const ExampleSpec& examples) {
  RETURN_IF_ERROR(CheckWeights(batch));
  std::vector<int64_t> dims = {batch.size};
  dims.insert(dims.end(), examples.labels_shape.dims().begin(), examples.labels_shape.dims().end());
  ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  if (batch.labels.dtype() != examples.labels_dtype || batch.labels.shape() != shape) {
    return absl::InvalidArgumentError(absl::StrCat("labels are ", NameOf(batch.labels.dtype()), " ",
                                                   batch.labels.shape().ToString(), ", but the model was built for ",
                                                   NameOf(examples.labels_dtype), " ", shape.ToString()));
  }
  if (examples.labels_dtype != v1::DT_INT32) return absl::OkStatus();
  const absl::Span<const int32_t> classes = batch.labels.flat<int32_t>();
  for (int64_t i = 0; i < batch.size; ++i) {
    if (classes[i] < 0 || classes[i] >= examples.classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", classes[i], " of example ", i, " is not in [0, ", examples.classes, ")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep

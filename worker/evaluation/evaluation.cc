#include "lockstep/worker/evaluation/evaluation.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lockstep/common/base/process/floating_point_mode.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {

const MetricValue* EvaluationResult::Find(absl::string_view name) const {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const MetricValue& value) { return value.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

std::string EvaluationResult::ToString() const {
  std::string text = absl::StrCat(examples, examples == 1 ? " example" : " examples");
  const char* separator = ": ";
  for (const MetricValue& metric : metrics) {
    if (!metric.matrix.empty()) continue;
    absl::StrAppendFormat(&text, "%s%s %.4g", separator, metric.name, metric.value);
    separator = ", ";
  }
  return text;
}

absl::Status ForEachBatch(const Dataset& dataset, const EvaluationOptions& options,
                          const std::function<absl::Status(int64_t, const Batch&)>& f) {
  if (options.batch_size <= 0 || options.max_batches < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluation with batch size ", options.batch_size, ", at most ", options.max_batches, " batches"));
  }
  int64_t batches = 0;
  for (int64_t first = 0; first < dataset.size(); first += options.batch_size) {
    if (options.max_batches > 0 && batches++ == options.max_batches) break;
    if (options.cancelled && options.cancelled()) {
      return absl::CancelledError(absl::StrCat("evaluation stopped at example ", first, " of ", dataset.size()));
    }
    std::vector<int64_t> indices(std::min(options.batch_size, dataset.size() - first));
    std::iota(indices.begin(), indices.end(), first);
    Batch batch;
    RETURN_IF_ERROR(dataset.Read(indices, &batch));
    // A model may load a library that changes the floating-point mode in any batch, even the last one.
    RETURN_IF_ERROR(CheckFloatingPointMode());
    RETURN_IF_ERROR(f(first, batch));
  }
  return CheckFloatingPointMode();
}

absl::StatusOr<EvaluationResult> Evaluate(Model* model, VariableValues values, const Dataset& dataset,
                                          std::vector<std::unique_ptr<Metric>> metrics,
                                          const EvaluationOptions& options) {
  const bool needs_loss = std::any_of(metrics.begin(), metrics.end(),
                                      [](const std::unique_ptr<Metric>& metric) { return metric->needs_loss(); });
  EvaluationResult result;
  int64_t batches = 0;
  RETURN_IF_ERROR(ForEachBatch(dataset, options, [&](int64_t, const Batch& batch) -> absl::Status {
    Model::Evaluation evaluation;
    if (needs_loss) {
      ASSIGN_OR_RETURN(evaluation, model->PredictAndEvaluateLoss(values, batch));
    } else {
      ASSIGN_OR_RETURN(evaluation.predictions, model->Predict(values, batch));
      evaluation.loss = std::numeric_limits<float>::quiet_NaN();
    }
    const MetricInput input{batch, evaluation.predictions, evaluation.loss};
    for (const auto& metric : metrics) RETURN_IF_ERROR(metric->Update(input));
    result.examples += batch.size;
    return options.after_batch ? options.after_batch(++batches, result.examples) : absl::OkStatus();
  }));
  for (const auto& metric : metrics) result.metrics.push_back(metric->Result());
  return result;
}

}  // namespace lockstep

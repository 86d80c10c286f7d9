#ifndef LOCKSTEP_WORKER_EVALUATION_EVALUATION_H_
#define LOCKSTEP_WORKER_EVALUATION_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/evaluation/metrics.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

struct EvaluationOptions {
  // Number of examples computed together, at least 1. The metrics do not depend on it.
  int64_t batch_size = 256;
  // Maximum number of batches; 0 means the whole split.
  int64_t max_batches = 0;
  // Called before each batch. If it returns true, the evaluation ends with Cancelled. May be null.
  std::function<bool()> cancelled;
  // Called by Evaluate after each batch, with the numbers of batches and examples so far. An error ends the evaluation.
  // May be null.
  std::function<absl::Status(int64_t batches, int64_t examples)> after_batch;
};

struct EvaluationResult {
  int64_t examples = 0;
  // The metrics in the order in which they were requested.
  std::vector<MetricValue> metrics;

  // Returns null if the metric was not requested.
  const MetricValue* Find(absl::string_view name) const;
  // Returns, for example, "10000 examples: accuracy 0.8451, mean_loss 0.4412". Omits matrices.
  std::string ToString() const;
};

// Computes predictions for the split's examples in order, including the last, possibly smaller batch, and updates the
// metrics, which must not have been used before. Computes the loss only if a metric needs it.
//
// Returns errors from the model, the metrics, after_batch and ForEachBatch.
absl::StatusOr<EvaluationResult> Evaluate(Model* model, VariableValues values, const Dataset& dataset,
                                          std::vector<std::unique_ptr<Metric>> metrics,
                                          const EvaluationOptions& options);

// Calls `f` with every batch of `dataset`, in order, until `f` fails. Used by Evaluate and for predictions.
//
// Returns errors from the dataset and from `f`, Cancelled, and errors from CheckFloatingPointMode, since evaluation
// must compute in the same way as training.
absl::Status ForEachBatch(const Dataset& dataset, const EvaluationOptions& options,
                          const std::function<absl::Status(int64_t first_example, const Batch& batch)>& f);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_EVALUATION_H_

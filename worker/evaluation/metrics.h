#ifndef LOCKSTEP_WORKER_EVALUATION_METRICS_H_
#define LOCKSTEP_WORKER_EVALUATION_METRICS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/evaluation/metric.h"

namespace lockstep {

// "accuracy": the fraction of examples whose greatest output (the first one in a tie) is the label's. With a single
//   output, and for each output of float labels (unless the loss is softmax), the fraction of outputs for which
//   output > 0 agrees with label > 0.5.
// "top_K", K = 1, 2, ...: the fraction of examples whose label is among the K greatest outputs.
// "mean_loss": the model's loss, regularizers included; batches count by their number of non-zero weights. The model
//   rounds each batch's loss to float, so the split into batches can change the last digits of a float.
// "rmse": sqrt of the mean squared difference of outputs and float labels.
// "auc": the exact area under the ROC curve (from the order of all scores, ties count half; Mann and Whitney 1947), not
//   TensorFlow's sum over 200 thresholds. The score is the only output, or the output of class 1 minus that of class 0.
//   Keeps 12 bytes per example.
// "confusion_matrix": counts; the value is the accuracy.
// "registered:NAME": the metric registered under this name (metric_registry.h); its value has that name.
// Errors: InvalidArgument for an unknown name, or one that does not suit the labels; NotFound, with the registered
// names, for a name that is not registered; errors from a registered metric's factory.
absl::StatusOr<std::unique_ptr<Metric>> CreateMetric(absl::string_view name, const config::v1::ModelConfig& model,
                                                     const ExampleSpec& examples);

// Returns "accuracy" if the labels are classes or if a loss is one for classification (softmax or sigmoid
// cross-entropy, hinge, log loss), otherwise "rmse". Always includes "mean_loss".
std::vector<std::string> DefaultMetrics(const config::v1::ModelConfig& model, const ExampleSpec& examples);

// Creates the named metrics, or the default ones if `names` is empty.
absl::StatusOr<std::vector<std::unique_ptr<Metric>>> CreateMetrics(absl::Span<const std::string> names,
                                                                   const config::v1::ModelConfig& model,
                                                                   const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_METRICS_H_

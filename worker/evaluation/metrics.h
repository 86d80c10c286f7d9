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

// "accuracy": the fraction of examples whose greatest output is that of the label, the first one where several are
//   equal. With one output, and for each output of float labels (unless the loss is softmax), whether output > 0
//   agrees with label > 0.5.
// "top_K", K = 1, 2, ...: the fraction of examples whose label is among the K greatest outputs.
// "mean_loss": the model's loss, regularizers included; the batches count with their number of non-zero weights. The
//   model rounds each batch's loss to float, so here the split can show in the last digits of a float.
// "rmse": sqrt of the mean squared difference of outputs and float labels.
// "auc": area under the ROC curve, exact (from the order of all scores, ties count half; Mann and Whitney 1947), not
//   TensorFlow's sum over 200 thresholds. The score is the only output, or that of class 1 less that of class 0.
//   Keeps 12 bytes for each example.
// "confusion_matrix": counts; the value is the accuracy.
// "registered:NAME": what metric_registry.h has under this name, which its value carries.
// Errors: InvalidArgument for an unknown name, or one that does not suit the labels; NotFound for one that is not
// registered names those that are; those of a registered metric's factory.
absl::StatusOr<std::unique_ptr<Metric>> CreateMetric(absl::string_view name, const config::v1::ModelConfig& model,
                                                     const ExampleSpec& examples);

// By the loss: classes give accuracy, other losses rmse, and always mean_loss. A model of the user's own is
// judged by its labels.
std::vector<std::string> DefaultMetrics(const config::v1::ModelConfig& model, const ExampleSpec& examples);

// Those named, or the default ones when `names` is empty.
absl::StatusOr<std::vector<std::unique_ptr<Metric>>> CreateMetrics(absl::Span<const std::string> names,
                                                                   const config::v1::ModelConfig& model,
                                                                   const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_METRICS_H_

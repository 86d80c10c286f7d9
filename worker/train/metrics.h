#ifndef LOCKSTEP_WORKER_TRAIN_METRICS_H_
#define LOCKSTEP_WORKER_TRAIN_METRICS_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "proto/model.pb.h"
#include "worker/data/batch.h"
#include "worker/data/batch_source.h"

namespace lockstep {

// What a metric learns of one batch.
struct MetricInput {
  const Batch& batch;
  // DT_FLOAT [size, outputs], as Model::Predict gives them.
  const Tensor& predictions;
  // Mean loss of the batch; NaN unless some metric needs it.
  float loss = std::numeric_limits<float>::quiet_NaN();
};

struct MetricValue {
  std::string name;
  // NaN when it is undefined: no examples, or for the AUC only one class.
  double value = std::numeric_limits<double>::quiet_NaN();
  // Confusion matrix only: counts [classes, classes], row-major; a row is a label, a column a prediction.
  int64_t classes = 0;
  std::vector<int64_t> matrix;
};

// A number about predictions and labels, gathered batch by batch: examples count one by one, in order, in double
// precision, so the result does not depend on how they were split into batches. Batch.weights count where they
// are given, except in the confusion matrix. Not thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual bool needs_loss() const { return false; }

  // Errors: InvalidArgument when predictions and labels do not fit each other or the metric.
  virtual absl::Status Update(const MetricInput& input) = 0;

  // Of the batches so far.
  virtual MetricValue Result() const = 0;
};

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
// Errors: InvalidArgument for an unknown name, or one that does not suit the labels.
absl::StatusOr<std::unique_ptr<Metric>> CreateMetric(absl::string_view name, const ModelConfig& model,
                                                     const ExampleSpec& examples);

// By the loss: classes give accuracy, other losses rmse, and always mean_loss. A model of the user's own is
// judged by its labels.
std::vector<std::string> DefaultMetrics(const ModelConfig& model, const ExampleSpec& examples);

// Those named, or the default ones when `names` is empty.
absl::StatusOr<std::vector<std::unique_ptr<Metric>>> CreateMetrics(absl::Span<const std::string> names,
                                                                   const ModelConfig& model,
                                                                   const ExampleSpec& examples);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_METRICS_H_

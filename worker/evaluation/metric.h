#ifndef LOCKSTEP_WORKER_EVALUATION_METRIC_H_
#define LOCKSTEP_WORKER_EVALUATION_METRIC_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lockstep/common/tensor/tensor.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep {

// The input of a metric from one batch.
struct MetricInput {
  const Batch& batch;
  // DT_FLOAT [size, outputs], as Model::Predict returns them.
  const Tensor& predictions;
  // Mean loss of the batch; NaN unless some metric needs it.
  float loss = std::numeric_limits<float>::quiet_NaN();
};

struct MetricValue {
  std::string name;
  // NaN if it is undefined: without examples or, for the AUC, with only one class.
  double value = std::numeric_limits<double>::quiet_NaN();
  // Confusion matrix only: counts [classes, classes], row-major; a row is a label, a column a prediction.
  int64_t classes = 0;
  std::vector<int64_t> matrix;
};

// A number computed from predictions and labels and accumulated batch by batch. Examples are added one by one, in
// order, in double precision, so the result does not depend on how they were split into batches. Batch.weights apply if
// present, except in the confusion matrix. Not thread-safe.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual bool needs_loss() const { return false; }

  // Returns InvalidArgument if predictions and labels do not match each other or the metric.
  virtual absl::Status Update(const MetricInput& input) = 0;

  // Returns the value over the batches so far.
  virtual MetricValue Result() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_METRIC_H_

#ifndef LOCKSTEP_TRAIN_EVALUATION_EVALUATE_VALUES_H_
#define LOCKSTEP_TRAIN_EVALUATION_EVALUATE_VALUES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/train_op.h"

namespace lockstep::train {

// Metric values by name.
using MetricsOfValues = std::map<std::string, double>;

// Evaluates the result of Session::Read in this process: runs the model of `op` with these values on all examples of
// `split` of its input. An empty `split` means evaluation.split of the configuration. `metrics` uses the names of
// evaluation.metric (worker/evaluation/metrics.h); if empty, uses the configuration's metrics. Ignores values that are
// not variables of the model. Errors: InvalidArgument naming a missing variable; errors of MakeModel, OpenDataset and
// the metrics.
absl::StatusOr<MetricsOfValues> EvaluateValues(const TrainOp& op, const ReadResult& values,
                                               const std::string& split = "",
                                               const std::vector<std::string>& metrics = {});

// Opens the data and the model once, and returns a function that evaluates each ReadResult as EvaluateValues does. The
// function is suitable for ValidationOptions::evaluate. Only one thread at a time may call it.
absl::StatusOr<std::function<absl::StatusOr<MetricsOfValues>(const ReadResult& values)>> ValuesEvaluator(
    const TrainOp& op, const std::string& split = "", const std::vector<std::string>& metrics = {});

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_EVALUATE_VALUES_H_

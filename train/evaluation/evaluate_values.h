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

// Metrics by name.
using MetricsOfValues = std::map<std::string, double>;

// Evaluates what Session::Read has returned, in this process: the model of `op` with these values, on all examples of
// `split` of its input. `split` may be empty: evaluation.split of the configuration. `metrics` are named as in
// evaluation.metric (worker/evaluation/metrics.h); empty: the configuration's. Values that are no variables of the
// model are passed over. Errors: InvalidArgument names a variable that is missing; those of MakeModel, of OpenDataset
// and of the metrics.
absl::StatusOr<MetricsOfValues> EvaluateValues(const TrainOp& op, const ReadResult& values,
                                               const std::string& split = "",
                                               const std::vector<std::string>& metrics = {});

// Opens data and model once, and returns a function that does the same with each ReadResult, for
// ValidationOptions::evaluate. The function is for one thread at a time.
absl::StatusOr<std::function<absl::StatusOr<MetricsOfValues>(const ReadResult& values)>> ValuesEvaluator(
    const TrainOp& op, const std::string& split = "", const std::vector<std::string>& metrics = {});

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_EVALUATE_VALUES_H_

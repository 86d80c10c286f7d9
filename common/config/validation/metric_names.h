#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_METRIC_NAMES_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_METRIC_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace lockstep {

// The metric names in EvaluationConfig.metric; worker/evaluation/metrics.h defines the metrics.

// Returns true for "accuracy", "top_5" with any number above 0, ...
bool IsBuiltInMetric(absl::string_view metric);

// Returns "f1" for "registered:f1", a metric that the program provides; nullopt for other strings and an empty name.
absl::optional<absl::string_view> RegisteredMetricName(absl::string_view metric);

// Returns "accuracy, top_5 (any number), ... or registered:NAME", for error messages.
std::string MetricNames();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_METRIC_NAMES_H_

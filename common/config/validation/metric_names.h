#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_METRIC_NAMES_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_METRIC_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace lockstep {

// How EvaluationConfig.metric names metrics; worker/evaluation/metrics.h says what they are.

// "accuracy", "top_5" with any number above 0, ...
bool IsBuiltInMetric(absl::string_view metric);

// "f1" of "registered:f1", a metric that the program brings; absent for other texts, and where no name follows.
absl::optional<absl::string_view> RegisteredMetricName(absl::string_view metric);

// "accuracy, top_5 (any number), ... or registered:NAME", for errors.
std::string MetricNames();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_METRIC_NAMES_H_

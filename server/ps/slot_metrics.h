#ifndef LOCKSTEP_SERVER_PS_SLOT_METRICS_H_
#define LOCKSTEP_SERVER_PS_SLOT_METRICS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

// The number of metrics of a step; others are ignored.
constexpr size_t kMaxStepMetrics = 32;
// The longest name of a metric, in bytes; metrics with longer ones are ignored.
constexpr size_t kMaxMetricName = 200;

// The metrics of one slot (SlotReport.metrics).
struct SlotMetrics {
  double weight = 1;       // the slot's weight in its step
  std::string serialized;  // a Summary of scalars
};

// The mean of one metric over the slots of a step.
struct StepMetric {
  std::string name;
  double mean = 0;
};

// Returns the weighted mean of each metric over the slots that report it, added in the order of the slots. The metrics
// have the order in which they first appear. A metric is absent if all slots that report it have the weight 0. Ignores
// values that are not scalars, slots whose bytes are not a Summary, and metrics beyond the two limits.
std::vector<StepMetric> FoldMetrics(absl::Span<const SlotMetrics> slots);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_SLOT_METRICS_H_

#ifndef LOCKSTEP_SERVER_PS_SLOT_METRICS_H_
#define LOCKSTEP_SERVER_PS_SLOT_METRICS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

// Maximum number of metrics per step. Any more are ignored.
constexpr size_t kMaxStepMetrics = 32;
// Maximum length of a metric's name, in bytes. Metrics with longer names are ignored.
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

// Returns the weighted mean of each metric over the slots that report it, summed in slot order. The metrics are in
// order of first appearance. A metric is absent if all slots that report it have weight 0. Ignores values that are not
// scalars, slots whose bytes are not a Summary, and metrics beyond the two limits.
std::vector<StepMetric> FoldMetrics(absl::Span<const SlotMetrics> slots);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_SLOT_METRICS_H_

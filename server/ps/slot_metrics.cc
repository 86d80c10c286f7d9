#include "lockstep/server/ps/slot_metrics.h"

#include <algorithm>
#include <utility>

#include "lockstep/v1/event.pb.h"

namespace lockstep {
namespace {

struct Sum {
  std::string name;
  double sum = 0;
  double weight = 0;
};

}  // namespace

std::vector<StepMetric> FoldMetrics(absl::Span<const SlotMetrics> slots) {
  std::vector<Sum> sums;
  for (const SlotMetrics& slot : slots) {
    v1::Summary summary;
    if (!summary.ParseFromString(slot.serialized)) continue;
    for (const v1::Summary::Value& value : summary.value()) {
      if (!value.has_simple_value() || value.tag().size() > kMaxMetricName) continue;
      auto it = std::find_if(sums.begin(), sums.end(), [&value](const Sum& sum) { return sum.name == value.tag(); });
      if (it == sums.end()) {
        if (sums.size() == kMaxStepMetrics) continue;
        it = sums.insert(sums.end(), Sum{value.tag()});
      }
      it->sum += slot.weight * value.simple_value();
      it->weight += slot.weight;
    }
  }
  std::vector<StepMetric> means;
  for (Sum& sum : sums) {
    if (sum.weight > 0) means.push_back({std::move(sum.name), sum.sum / sum.weight});
  }
  return means;
}

}  // namespace lockstep

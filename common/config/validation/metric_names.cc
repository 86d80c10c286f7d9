#include "lockstep/common/config/validation/metric_names.h"

#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

constexpr const char* kMetrics[] = {"accuracy", "mean_loss", "rmse", "auc", "confusion_matrix"};

}  // namespace

bool IsBuiltInMetric(absl::string_view metric) {
  int64_t k = 0;
  if (absl::ConsumePrefix(&metric, "top_")) return absl::SimpleAtoi(metric, &k) && k > 0;
  return absl::c_linear_search(kMetrics, metric);
}

absl::optional<absl::string_view> RegisteredMetricName(absl::string_view metric) {
  if (!absl::ConsumePrefix(&metric, "registered:") || metric.empty()) return absl::nullopt;
  return metric;
}

std::string MetricNames() {
  return absl::StrCat(absl::StrJoin(kMetrics, ", "), ", top_5 (any number), or registered:NAME");
}

}  // namespace lockstep

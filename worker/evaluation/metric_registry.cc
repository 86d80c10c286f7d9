#include "lockstep/worker/evaluation/metric_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/config/validation/metric_names.h"

namespace lockstep {
namespace {

NameRegistry<MetricFactory>& TheRegistry() {
  static auto* registry = new NameRegistry<MetricFactory>("a metric");
  return *registry;
}

}  // namespace

absl::Status RegisterMetric(absl::string_view name, MetricFactory factory) {
  // Otherwise, both metrics would be shown under the same name.
  if (IsBuiltInMetric(name)) {
    return absl::InvalidArgumentError(absl::StrCat("a metric cannot be registered as '", name, "', a built-in one"));
  }
  return TheRegistry().Add(name, std::move(factory));
}

absl::StatusOr<MetricFactory> FindMetric(absl::string_view name) {
  if (auto factory = TheRegistry().Find(name)) return *std::move(factory);
  return TheRegistry().Lacks(absl::StrCat("registered is \"", name, "\""),
                             "examples/own_input.cc shows how a program gets one");
}

std::vector<std::string> RegisteredMetrics() { return TheRegistry().Names(); }

}  // namespace lockstep

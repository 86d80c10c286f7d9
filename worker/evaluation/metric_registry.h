#ifndef LOCKSTEP_WORKER_EVALUATION_METRIC_REGISTRY_H_
#define LOCKSTEP_WORKER_EVALUATION_METRIC_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/name_registry.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/evaluation/metric.h"

namespace lockstep {

// Creates a metric for one evaluation of a model, for examples as described by `examples`. Returns InvalidArgument if
// the metric does not suit them. Only the result's `value` is used; it is shown under the registered name.
using MetricFactory = std::function<absl::StatusOr<std::unique_ptr<Metric>>(const config::v1::ModelConfig& model,
                                                                            const ExampleSpec& examples)>;

// Registers the factory under `name`, for "registered:NAME" in EvaluationConfig.metric. Thread-safe. Returns
// AlreadyExists if the name is in use, and InvalidArgument if it is empty or a built-in metric's.
absl::Status RegisterMetric(absl::string_view name, MetricFactory factory);

// Returns the factory registered under `name`. If there is none, returns NotFound, which lists the registered names.
// Thread-safe.
absl::StatusOr<MetricFactory> FindMetric(absl::string_view name);

// Returns the registered names, sorted. Thread-safe.
std::vector<std::string> RegisteredMetrics();

// Registers a metric. Use it at namespace scope in a source file whose library has alwayslink = True. A duplicate name
// ends the program.
//   REGISTER_METRIC("f1", [](const ModelConfig& model, const ExampleSpec& examples) { return F1::Create(examples); });
#define REGISTER_METRIC(name, ...) LOCKSTEP_REGISTERED_(::lockstep::RegisterMetric(name, __VA_ARGS__))

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_EVALUATION_METRIC_REGISTRY_H_

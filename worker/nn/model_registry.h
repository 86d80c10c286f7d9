#ifndef LOCKSTEP_WORKER_NN_MODEL_REGISTRY_H_
#define LOCKSTEP_WORKER_NN_MODEL_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/model.pb.h"
#include "worker/data/batch_source.h"
#include "worker/nn/model.h"

namespace lockstep {

struct ModelOptions {
  // Threads that compute one batch, the caller's included. The results do not depend on it.
  int compute_threads = 1;
};

// Makes a model from its configuration (ModelConfig.parameter holds the model's own) for such examples.
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>(
    const ModelConfig& config, const ExampleSpec& examples, const ModelOptions& options)>;

// Makes the factory known under `name`, for ModelConfig.registered. Thread-safe. AlreadyExists for a name in use.
absl::Status RegisterModel(absl::string_view name, ModelFactory factory);

// NotFound names those that are registered. Thread-safe.
absl::StatusOr<ModelFactory> FindModel(absl::string_view name);

// Sorted. Thread-safe.
std::vector<std::string> RegisteredModels();

// At namespace scope of a source file; its library needs alwayslink = True. A name used twice ends the program:
//   REGISTER_MODEL("two_towers", [](const ModelConfig& config, const ExampleSpec& examples,
//                                   const ModelOptions& options) { return TwoTowers::Create(config, examples); });
#define REGISTER_MODEL(name, ...) LOCKSTEP_REGISTER_MODEL_(__COUNTER__, name, __VA_ARGS__)
#define LOCKSTEP_REGISTER_MODEL_(counter, name, ...) LOCKSTEP_REGISTER_MODEL_NAMED_(counter, name, __VA_ARGS__)
#define LOCKSTEP_REGISTER_MODEL_NAMED_(counter, name, ...) \
  [[maybe_unused]] static const ::lockstep::ModelRegistration lockstep_model_registration_##counter(name, __VA_ARGS__)

// What REGISTER_MODEL expands to.
struct ModelRegistration {
  ModelRegistration(absl::string_view name, ModelFactory factory);
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_MODEL_REGISTRY_H_

#ifndef LOCKSTEP_WORKER_NN_MODEL_REGISTRY_H_
#define LOCKSTEP_WORKER_NN_MODEL_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/name_registry.h"
#include "lockstep/config/v1/model.pb.h"
#include "lockstep/worker/data/batch_source.h"
#include "lockstep/worker/nn/model.h"

namespace lockstep {

struct ModelOptions {
  // Number of threads that compute one batch, including the caller's thread. It does not affect the results.
  int compute_threads = 1;
};

// Creates a model from its configuration (ModelConfig.parameter holds the model's own settings) for examples as
// described by `examples`.
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>(
    const config::v1::ModelConfig& config, const ExampleSpec& examples, const ModelOptions& options)>;

// Registers the factory under `name`, for ModelConfig.registered. Thread-safe. Returns AlreadyExists if the name is in
// use, and InvalidArgument if it is empty.
absl::Status RegisterModel(absl::string_view name, ModelFactory factory);

// Returns the factory registered under `name`. If there is none, returns NotFound, which lists the registered names.
// Thread-safe.
absl::StatusOr<ModelFactory> FindModel(absl::string_view name);

// Returns the registered names, sorted. Thread-safe.
std::vector<std::string> RegisteredModels();

// Registers a model. Use it at namespace scope in a source file whose library has alwayslink = True. A duplicate name
// ends the program.
//   REGISTER_MODEL("two_towers", [](const ModelConfig& config, const ExampleSpec& examples,
//                                   const ModelOptions& options) { return TwoTowers::Create(config, examples); });
#define REGISTER_MODEL(name, ...) LOCKSTEP_REGISTERED_(::lockstep::RegisterModel(name, __VA_ARGS__))

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_MODEL_REGISTRY_H_

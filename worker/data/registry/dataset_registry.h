#ifndef LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_REGISTRY_H_
#define LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/base/name_registry.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/worker/data/dataset.h"
#include "lockstep/worker/data/registry/dataset_options.h"

namespace lockstep {

// The arguments for making a registered input. All processes of a run must make the same examples, in the same order.
struct DatasetRequest {
  // The input's parameters, and its file names in a form that can be opened.
  config::v1::InputConfig::Registered source;
  // The split's name.
  std::string split;
  // The run's seed.
  uint64_t seed = 0;
  // The treatment of damaged data.
  config::v1::InputConfig::OnDamage on_damage = config::v1::InputConfig::FAIL;
  DatasetOptions options;
};

// Creates an input. Its float features are normalized afterwards if the configuration requests it. The checksum that is
// passed to the Dataset's constructor is used to check that all workers of a run have the same data.
using DatasetFactory = std::function<absl::StatusOr<std::unique_ptr<Dataset>>(const DatasetRequest& request)>;

// Registers the factory under `name`, for InputConfig.Registered. Thread-safe. Returns AlreadyExists if the name is in
// use, and InvalidArgument if it is empty.
absl::Status RegisterDataset(absl::string_view name, DatasetFactory factory);

// Returns the factory registered under `name`. If there is none, returns NotFound, which lists the registered names.
// Thread-safe.
absl::StatusOr<DatasetFactory> FindDataset(absl::string_view name);

// Returns the registered names, sorted. Thread-safe.
std::vector<std::string> RegisteredDatasets();

// Registers an input. Use it at namespace scope in a source file whose library has alwayslink = True. A duplicate name
// ends the program.
//   REGISTER_DATASET("spirals", [](const DatasetRequest& request) { return Spirals::Create(request); });
#define REGISTER_DATASET(name, ...) LOCKSTEP_REGISTERED_(::lockstep::RegisterDataset(name, __VA_ARGS__))

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_REGISTRY_H_

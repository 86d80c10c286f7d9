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

// What a registered input is made from. All processes of a run must make the same examples of it, in the same order.
struct DatasetRequest {
  // Parameters, and files as they are to be opened.
  config::v1::InputConfig::Registered source;
  // The split's name.
  std::string split;
  // The run's.
  uint64_t seed = 0;
  // What to do with damaged data.
  config::v1::InputConfig::OnDamage on_damage = config::v1::InputConfig::FAIL;
  DatasetOptions options;
};

// Makes an input; its float features are normalized afterwards, where the configuration asks for it. The checksum that
// the Dataset is constructed with is what the run's workers are compared by.
using DatasetFactory = std::function<absl::StatusOr<std::unique_ptr<Dataset>>(const DatasetRequest& request)>;

// Registers the factory under `name`, for InputConfig.Registered. Thread-safe. AlreadyExists for a name in use,
// InvalidArgument for an empty one.
absl::Status RegisterDataset(absl::string_view name, DatasetFactory factory);

// NotFound names those that are registered. Thread-safe.
absl::StatusOr<DatasetFactory> FindDataset(absl::string_view name);

// Sorted. Thread-safe.
std::vector<std::string> RegisteredDatasets();

// At namespace scope of a source file; its library needs alwayslink = True. A name used twice ends the program:
//   REGISTER_DATASET("spirals", [](const DatasetRequest& request) { return Spirals::Create(request); });
#define REGISTER_DATASET(name, ...) LOCKSTEP_REGISTERED_(::lockstep::RegisterDataset(name, __VA_ARGS__))

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_DATA_REGISTRY_DATASET_REGISTRY_H_

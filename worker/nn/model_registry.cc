#include "worker/nn/model_registry.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mutex.h"
#include "glog/logging.h"

namespace lockstep {
namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, ModelFactory> factories ABSL_GUARDED_BY(mutex);
};

// Made at first use, never destroyed: registrations run before main, in any order.
Registry& TheRegistry() {
  static Registry* registry = new Registry;
  return *registry;
}

}  // namespace

absl::Status RegisterModel(absl::string_view name, ModelFactory factory) {
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  if (!registry.factories.emplace(std::string(name), std::move(factory)).second) {
    return absl::AlreadyExistsError(absl::StrCat("a model '", name, "' is registered already"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelFactory> FindModel(absl::string_view name) {
  {
    Registry& registry = TheRegistry();
    MutexLock lock(&registry.mutex);
    const auto found = registry.factories.find(std::string(name));
    if (found != registry.factories.end()) return found->second;
  }
  const std::vector<std::string> known = RegisteredModels();
  return absl::NotFoundError(absl::StrCat(
      "model.registered is \"", name, "\", a model that this program lacks; it has ",
      known.empty() ? "none" : absl::StrJoin(known, ", "), " (examples/own_model.cc shows how a program gets one)"));
}

std::vector<std::string> RegisteredModels() {
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, factory] : registry.factories) names.push_back(name);
  return names;
}

ModelRegistration::ModelRegistration(absl::string_view name, ModelFactory factory) {
  const absl::Status status = RegisterModel(name, std::move(factory));
  CHECK(status.ok()) << status;
}

}  // namespace lockstep

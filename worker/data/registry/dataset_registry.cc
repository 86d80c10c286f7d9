#include "lockstep/worker/data/registry/dataset_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

NameRegistry<DatasetFactory>& TheRegistry() {
  static auto* registry = new NameRegistry<DatasetFactory>("an input");
  return *registry;
}

}  // namespace

absl::Status RegisterDataset(absl::string_view name, DatasetFactory factory) {
  return TheRegistry().Add(name, std::move(factory));
}

absl::StatusOr<DatasetFactory> FindDataset(absl::string_view name) {
  if (auto factory = TheRegistry().Find(name)) return *std::move(factory);
  return TheRegistry().Lacks(absl::StrCat("registered.name is \"", name, "\""),
                             "examples/own_input.cc shows how a program gets one");
}

std::vector<std::string> RegisteredDatasets() { return TheRegistry().Names(); }

}  // namespace lockstep

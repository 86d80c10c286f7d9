#include "lockstep/worker/nn/model_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

NameRegistry<ModelFactory>& TheRegistry() {
  static auto* registry = new NameRegistry<ModelFactory>("a model");
  return *registry;
}

}  // namespace

absl::Status RegisterModel(absl::string_view name, ModelFactory factory) {
  return TheRegistry().Add(name, std::move(factory));
}

absl::StatusOr<ModelFactory> FindModel(absl::string_view name) {
  if (auto factory = TheRegistry().Find(name)) return *std::move(factory);
  return TheRegistry().Lacks(absl::StrCat("model.registered is \"", name, "\""),
                             "examples/own_model.cc shows how a program gets one");
}

std::vector<std::string> RegisteredModels() { return TheRegistry().Names(); }

}  // namespace lockstep

#include "lockstep/train/hooks/base/hook_registry.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {
namespace {

NameRegistry<HookFactory>& TheRegistry() {
  static auto* registry = new NameRegistry<HookFactory>("a hook");
  return *registry;
}

// "key=value,key=value".
absl::StatusOr<HookParameters> ParseParameters(absl::string_view text) {
  HookParameters parameters;
  for (const absl::string_view parameter : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    if (entry.first.empty() || !absl::StrContains(parameter, '=')) {
      return absl::InvalidArgumentError(absl::StrCat("'", parameter, "' must be key=value"));
    }
    if (!parameters.insert(entry).second) {
      return absl::InvalidArgumentError(absl::StrCat("'", entry.first, "' is given twice, must be given once"));
    }
  }
  return parameters;
}

absl::StatusOr<std::unique_ptr<Hook>> CreateHook(absl::string_view text) {
  const size_t colon = text.find(':');
  ASSIGN_OR_RETURN(const HookFactory factory, FindHook(text.substr(0, colon)));
  HookParameters parameters;
  if (colon != absl::string_view::npos) {
    ASSIGN_OR_RETURN(parameters, ParseParameters(text.substr(colon + 1)));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Hook> hook, factory(parameters));
  if (hook == nullptr) return absl::InvalidArgumentError("the registered hook made nothing");
  return hook;
}

}  // namespace

absl::Status RegisterHook(absl::string_view name, HookFactory factory) {
  if (absl::StrContains(name, ':')) {
    return absl::InvalidArgumentError(absl::StrCat("a hook's name has no ':', and '", name, "' has one"));
  }
  return TheRegistry().Add(name, std::move(factory));
}

absl::StatusOr<HookFactory> FindHook(absl::string_view name) {
  if (auto factory = TheRegistry().Find(name)) return *std::move(factory);
  return TheRegistry().Lacks(absl::StrCat("the name is '", name, "'"),
                             "REGISTER_HOOK in train/hooks/base/hook_registry.h adds one");
}

std::vector<std::string> RegisteredHooks() { return TheRegistry().Names(); }

void AddHookFlag(CommandLine* command_line, std::vector<std::string>* hooks) {
  const std::vector<std::string> known = RegisteredHooks();
  command_line->AddFlag("hook", "NAME[:key=value,...]",
                        absl::StrCat("calls this hook around each step: ",
                                     known.empty() ? "this program has none" : absl::StrJoin(known, ", ")),
                        hooks);
}

absl::StatusOr<std::vector<std::unique_ptr<Hook>>> CreateHooks(absl::Span<const std::string> texts) {
  std::vector<std::unique_ptr<Hook>> hooks;
  for (const std::string& text : texts) {
    absl::StatusOr<std::unique_ptr<Hook>> hook = CreateHook(text);
    if (!hook.ok()) {
      return absl::Status(hook.status().code(), absl::StrCat("--hook=", text, ": ", hook.status().message()));
    }
    hooks.push_back(*std::move(hook));
  }
  return hooks;
}

}  // namespace lockstep::train

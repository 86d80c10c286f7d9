#include "lockstep/server/ps/versions/checkpoint_keys.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr char kEstimate[] = "GradientEstimate_";
// A variable's name with a suffix is a key of the checkpoint's index, and such a key may have at most 64 KiB.
constexpr size_t kMostNameBytes = 60 << 10;

absl::Status Taken(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", name, " has the name under which a checkpoint keeps ", what, "; give it another"));
}

// Returns true if `suffix` is one that GradientEstimateKey appends to a variable's name for a slot below `estimates`.
bool IsEstimate(absl::string_view suffix, int64_t estimates) {
  int64_t slot = 0;
  return absl::ConsumePrefix(&suffix, kEstimate) && absl::SimpleAtoi(suffix, &slot) && slot >= 0 && slot < estimates &&
         suffix == absl::StrCat(slot);
}

absl::Status CheckName(absl::string_view name) {
  if (name.size() > kMostNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", absl::CHexEscape(name.substr(0, 100)),
                                                   "... has a name of ", name.size(), " bytes, more than ",
                                                   kMostNameBytes));
  }
  if (name.front() == '\0') {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", absl::CHexEscape(name), ": its name begins with a zero byte"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string OptimizerStateKey(absl::string_view variable, absl::string_view slot) {
  return absl::StrCat(variable, "/", slot);
}

std::string GradientEstimateKey(absl::string_view variable, int64_t slot) {
  return OptimizerStateKey(variable, absl::StrCat(kEstimate, slot));
}

absl::Status CheckCheckpointKeys(const ParameterLayout& layout, const OptimizerGroups& optimizers, int64_t estimates) {
  absl::flat_hash_map<std::string, int> trained;
  for (size_t i = 0; i < layout.variables().size(); ++i) {
    const v1::VariableSpec& spec = layout.variables()[i].spec;
    if (spec.trainable()) trained.emplace(spec.name(), static_cast<int>(i));
  }
  const std::vector<OptimizerScalar> scalars = optimizers.scalars();
  for (const auto& variable : layout.variables()) {
    const absl::string_view name = variable.spec.name();
    RETURN_IF_ERROR(CheckName(name));
    if (name == kGlobalStepKey) return Taken(name, "the number of updates");
    if (name == kStreamPositionsKey) return Taken(name, "the positions of input streams");
    if (name == kSessionStateKey) return Taken(name, "the state of the programs that follow the run");
    for (const OptimizerScalar& scalar : scalars) {
      if (name == scalar.name) return Taken(name, "a scalar of the optimizer");
    }
    // Names of optimizer state have no slash.
    const size_t slash = name.rfind('/');
    if (slash == absl::string_view::npos) continue;
    const absl::string_view owner = name.substr(0, slash);
    const auto found = trained.find(owner);
    if (found == trained.end()) continue;
    const absl::string_view suffix = name.substr(slash + 1);
    for (const Optimizer::State& state : optimizers.RuleOf(found->second).state()) {
      if (suffix == state.name)
        return Taken(name, absl::StrCat("the optimizer's state ", state.name, " of variable ", owner));
    }
    if (IsEstimate(suffix, estimates)) {
      return Taken(name, absl::StrCat("an estimate of the gradient of variable ", owner));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep

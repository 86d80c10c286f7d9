#include "lockstep/cli/report/weight_names.h"

#include <algorithm>
#include <array>

#include "absl/status/statusor.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

// Adam's scalars.
constexpr std::array<absl::string_view, 2> kOptimizerScalars = {"beta1_power", "beta2_power"};

bool IsWeight(const TensorReader& checkpoint, const std::string& name) {
  const bool is_of_run = name == kGlobalStepKey || name == kSessionStateKey || name == kStreamPositionsKey ||
                         std::find(kOptimizerScalars.begin(), kOptimizerScalars.end(), name) != kOptimizerScalars.end();
  const absl::StatusOr<TensorReader::Entry> entry = checkpoint.Describe(name);
  if (is_of_run || !entry.ok() || SizeOf(entry->dtype) == 0) return false;
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return true;
  const absl::StatusOr<TensorReader::Entry> owner = checkpoint.Describe(name.substr(0, slash));
  return !owner.ok() || owner->shape != entry->shape;
}

}  // namespace

std::vector<std::string> WeightNames(const TensorReader& checkpoint, const v1::ModelSpec* model) {
  std::vector<std::string> names;
  if (model != nullptr) {
    for (const v1::VariableSpec& variable : model->variables()) names.push_back(variable.name());
    std::sort(names.begin(), names.end());
    const bool has_all =
        std::all_of(names.begin(), names.end(), [&](const std::string& name) { return checkpoint.Contains(name); });
    if (has_all && !names.empty()) return names;
    names.clear();
  }
  for (std::string& name : checkpoint.names()) {
    if (IsWeight(checkpoint, name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace lockstep

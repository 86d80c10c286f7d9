#include "lockstep/server/optimizer/optimizer_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/config/validation/optimizer_group.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/config/validation/variable_expression.h"
#include "lockstep/server/optimizer/learning_rate.h"
#include "lockstep/server/optimizer/schedule_registry.h"

namespace lockstep {
namespace {

std::string FieldOf(int group) { return absl::StrCat("optimizer.group[", group, "]"); }

// Returns the variables of a layout in the form in which expressions are matched against them.
v1::ModelSpec ModelOf(const ParameterLayout& layout) {
  v1::ModelSpec model;
  for (const auto& variable : layout.variables()) *model.add_variables() = variable.spec;
  return model;
}

// A generator of unique names for the scalars of several rules.
class ScalarNames {
 public:
  std::string Next(const std::string& name) {
    const int before = times_[name]++;
    return before == 0 ? name : absl::StrCat(name, "_", before);
  }

 private:
  std::map<std::string, int> times_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OptimizerGroups>> OptimizerGroups::Create(const config::v1::OptimizerConfig& config,
                                                                         const ParameterLayout& layout) {
  RETURN_IF_ERROR(ValidateOptimizerRule(config));
  auto groups = absl::WrapUnique(new OptimizerGroups());
  for (int index = -1; index < config.group_size(); ++index) RETURN_IF_ERROR(groups->AddGroup(config, index));
  groups->group_of_.assign(layout.variables().size(), 0);
  for (const auto& variable : layout.variables()) groups->trained_.push_back(variable.spec.trainable());
  for (int i = 0; i < config.group_size(); ++i) RETURN_IF_ERROR(groups->AddVariables(config, i, layout));
  RETURN_IF_ERROR(groups->SelectAveraged(config, layout));
  for (size_t i = 0; i < groups->group_of_.size(); ++i) {
    if (groups->trained_[i]) groups->groups_[groups->group_of_[i]].has_variables = true;
  }
  return groups;
}

absl::Status OptimizerGroups::AddGroup(const config::v1::OptimizerConfig& config, int index) {
  const config::v1::OptimizerConfig own = index < 0 ? config : OptimizerOfGroup(config, config.group(index));
  Group group;
  ASSIGN_OR_RETURN(group.rule, Optimizer::Create(own));
  group.learning_rate = own.learning_rate();
  if (group.learning_rate.has_registered()) {
    RETURN_IF_ERROR(FindSchedule(group.learning_rate.registered()).status());
  }
  group.has_clip = own.has_clip();
  group.mean_limit = own.clip().mean_by_global_norm();
  group.averages_selected = !own.moving_average().variables().empty();
  if (index >= 0) {
    if (config.group(index).has_rate_factor()) group.rate_factor = config.group(index).rate_factor();
    if (HasKind(config.group(index).optimizer())) group.scalars_of = groups_.size();
  }
  groups_.push_back(std::move(group));
  return absl::OkStatus();
}

absl::Status OptimizerGroups::AddVariables(const config::v1::OptimizerConfig& config, int index,
                                           const ParameterLayout& layout) {
  const absl::StatusOr<std::vector<int>> matched =
      FindTrainableVariables(config.group(index).variables(), ModelOf(layout));
  if (!matched.ok()) return InField(FieldOf(index), matched.status());
  for (const int variable : *matched) {
    size_t& group = group_of_[variable];
    if (group != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable ", layout.variables()[variable].spec.name(), " matches ", FieldOf(static_cast<int>(group) - 1),
          " (\"", config.group(static_cast<int>(group) - 1).variables(), "\") and ", FieldOf(index), " (\"",
          config.group(index).variables(), "\"); it must match one of them at most"));
    }
    group = static_cast<size_t>(index) + 1;
  }
  return absl::OkStatus();
}

absl::Status OptimizerGroups::SelectAveraged(const config::v1::OptimizerConfig& config, const ParameterLayout& layout) {
  selected_.assign(layout.variables().size(), config.moving_average().variables().empty());
  const v1::ModelSpec model = ModelOf(layout);
  for (const std::string& expression : config.moving_average().variables()) {
    const absl::StatusOr<std::vector<int>> matched = FindTrainableVariables(expression, model);
    if (!matched.ok()) return InField("optimizer.moving_average", matched.status());
    for (const int variable : *matched) selected_[variable] = true;
  }
  return absl::OkStatus();
}

std::vector<std::vector<Optimizer::State>> OptimizerGroups::StatesOfVariables() const {
  std::vector<std::vector<Optimizer::State>> states(group_of_.size());
  for (size_t i = 0; i < states.size(); ++i) {
    if (!trained_[i]) continue;
    const Group& group = groups_[group_of_[i]];
    const absl::Span<const Optimizer::State> of_rule = group.rule->state();
    states[i].assign(of_rule.begin(), of_rule.end());
    if (group.averages_selected && !selected_[i]) states[i].pop_back();  // the average is the last
  }
  return states;
}

bool OptimizerGroups::ClipsMeans() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.mean_limit > 0; });
}

void OptimizerGroups::BeginStep(int64_t step) {
  for (Group& group : groups_) {
    group.rate = LearningRateAt(group.learning_rate, step) * group.rate_factor;
    group.rule->BeginStep(group.rate);
    group.rule->SetGlobalStep(step + 1);
  }
}

absl::optional<std::string> OptimizerGroups::FindNonFiniteRate() const {
  for (const Group& group : groups_) {
    if (!std::isfinite(group.rate)) return group.learning_rate.registered();
  }
  return absl::nullopt;
}

void OptimizerGroups::EndStep() {
  for (Group& group : groups_) group.rule->EndStep();
}

bool OptimizerGroups::HasScalars(size_t group) const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [group](const Group& other) { return other.scalars_of == group && other.has_variables; });
}

std::vector<OptimizerScalar> OptimizerGroups::scalars() const {
  std::vector<OptimizerScalar> scalars;
  ScalarNames names;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].scalars_of != i || !HasScalars(i)) continue;
    for (const OptimizerScalar& scalar : groups_[i].rule->scalars()) {
      scalars.push_back({names.Next(scalar.name), scalar.value});
    }
  }
  return scalars;
}

void OptimizerGroups::RestoreScalars(absl::Span<const OptimizerScalar> scalars) {
  ScalarNames names;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].scalars_of != i || !HasScalars(i)) continue;
    std::vector<OptimizerScalar> own = groups_[i].rule->scalars();
    for (OptimizerScalar& scalar : own) {
      const std::string name = names.Next(scalar.name);
      for (const OptimizerScalar& given : scalars) {
        if (given.name == name) scalar.value = given.value;
      }
    }
    for (Group& group : groups_) {
      if (group.scalars_of == i) group.rule->RestoreScalars(own);
    }
  }
}

absl::Status CheckSameState(const OptimizerGroups& before, const OptimizerGroups& after) {
  const auto had = before.StatesOfVariables(), has = after.StatesOfVariables();
  for (size_t i = 0; i < had.size(); ++i) RETURN_IF_ERROR(CheckSameState(had[i], has[i]));
  return absl::OkStatus();
}

absl::Status CheckSameState(const config::v1::OptimizerConfig& before, const config::v1::OptimizerConfig& after) {
  if (before.kind_case() != after.kind_case()) {
    return absl::InvalidArgumentError("optimizer: its kind differs from the run's, which cannot change");
  }
  ASSIGN_OR_RETURN(const auto old_rule, Optimizer::Create(before));
  ASSIGN_OR_RETURN(const auto new_rule, Optimizer::Create(after));
  RETURN_IF_ERROR(CheckSameState(old_rule->state(), new_rule->state()));
  if (!absl::c_equal(before.moving_average().variables(), after.moving_average().variables())) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.moving_average.variables would be \"",
                     absl::StrJoin(after.moving_average().variables(), "\", \""), "\", but the run has \"",
                     absl::StrJoin(before.moving_average().variables(), "\", \""), "\", which cannot change"));
  }
  if (before.group_size() != after.group_size()) {
    return absl::InvalidArgumentError(absl::StrCat("optimizer.group: there would be ", after.group_size(),
                                                   " groups, but the run has ", before.group_size(),
                                                   ", which cannot change"));
  }
  for (int i = 0; i < before.group_size(); ++i) {
    if (before.group(i).variables() != after.group(i).variables()) {
      return absl::InvalidArgumentError(absl::StrCat(FieldOf(i), ".variables would be \"", after.group(i).variables(),
                                                     "\", but the run has \"", before.group(i).variables(),
                                                     "\", which cannot change"));
    }
    if (HasKind(before.group(i).optimizer()) != HasKind(after.group(i).optimizer())) {
      return absl::InvalidArgumentError(absl::StrCat(FieldOf(i), ".optimizer: the run's group has ",
                                                     HasKind(before.group(i).optimizer()) ? "a" : "no",
                                                     " rule of its own, which cannot change"));
    }
    const absl::Status same =
        CheckSameState(OptimizerOfGroup(before, before.group(i)), OptimizerOfGroup(after, after.group(i)));
    if (!same.ok()) return InField(FieldOf(i), same);
  }
  return absl::OkStatus();
}

}  // namespace lockstep

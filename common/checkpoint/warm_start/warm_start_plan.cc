#include "lockstep/common/checkpoint/warm_start/warm_start_plan.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/checkpoint/formats/float32_reader.h"
#include "lockstep/common/checkpoint/warm_start/warm_start_report.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
absl::StatusOr<WarmStartPlan> PlanWarmStart(const TensorReader& checkpoint, const WarmStartRules& rules,
                                            const v1::ModelSpec& model) {
  WarmStartPlan plan;
  WarmStartReport report;
  for (int i = 0; i < model.variables_size(); ++i) {
    const v1::VariableSpec& variable = model.variables(i);
    if (!rules.Selects(variable.name())) {
      report.AddExcluded(variable.name());
      continue;
    }
    const std::string key = rules.KeyOf(variable.name());
    if (!checkpoint.Contains(key)) {
      report.AddMissing(variable.name(), key);
      continue;
    }
    ASSIGN_OR_RETURN(const Shape shape, Shape::Create(variable.shape()));
    ASSIGN_OR_RETURN(const TensorReader::Entry entry, checkpoint.Describe(key));
    const bool reshaped = rules.reshape() && entry.shape != shape && entry.shape.num_elements() == shape.num_elements();
    RETURN_IF_ERROR(CheckStoredVariable(checkpoint, key, v1::DT_FLOAT, reshaped ? entry.shape : shape));
    plan.loads.push_back({i, key, reshaped});
    report.AddLoaded(variable.name(), shape, key,
                     reshaped ? absl::StrCat(", reshaped from ", entry.shape.ToString()) : "");
  }
  const std::vector<std::string>& missing = report.missing();
  if (rules.require_all() && !missing.empty()) {
    return absl::NotFoundError(absl::StrCat(checkpoint.prefix(), " lacks ", absl::StrJoin(missing, ", ")));
  }
  if (plan.loads.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.prefix(), " has none of the model's variables that are to be loaded",
                     missing.empty() ? "" : absl::StrCat(", ", missing.front(), " for one")));
  }
  plan.report = report.ToString(checkpoint, model.variables_size());
  return plan;
}

absl::StatusOr<WarmStart> OpenWarmStart(FileSystem* fs, const config::v1::CheckpointConfig& config,
                                        const v1::ModelSpec& model) {
  const auto open = [&]() -> absl::StatusOr<WarmStart> {
    WarmStart start;
    ASSIGN_OR_RETURN(start.checkpoint, OpenWeights(fs, config.warm_start()));
    ASSIGN_OR_RETURN(const WarmStartRules rules, WarmStartRules::Create(config.warm_start_variables()));
    ASSIGN_OR_RETURN(start.plan, PlanWarmStart(*start.checkpoint, rules, model));
    return start;
  };
  auto start = open();
  if (!start.ok()) return InField("checkpoint.warm_start", start.status());
  return start;
}

absl::Status CheckValues(const WarmStart& start) {
  for (const WarmStartPlan::Load& load : start.plan.loads) {
    const auto value = start.checkpoint->Read(load.key);
    if (!value.ok()) return InField("checkpoint.warm_start", value.status());
    const absl::Status finite = CheckFinite(*start.checkpoint, load.key, value->flat<float>());
    if (!finite.ok()) return InField("checkpoint.warm_start", finite);
  }
  return absl::OkStatus();
}

}  // namespace lockstep

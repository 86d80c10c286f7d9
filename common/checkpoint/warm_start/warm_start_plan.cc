#include "lockstep/common/checkpoint/warm_start/warm_start_plan.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/checkpoint/formats/float32_reader.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/warm_start/permutation.h"
#include "lockstep/common/checkpoint/warm_start/warm_start_report.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/common/tensor/tensor.h"

namespace lockstep {
namespace {

// Maximum number of the checkpoint's tensor names that an error message lists.
constexpr size_t kShownNames = 8;

// A variable and the tensor that initializes it, with their shapes.
struct Match {
  std::string variable;
  Shape shape;
  WarmStartRules::Source source;
  Shape stored;
};

absl::Status Refuse(const TensorReader& checkpoint, const Match& match, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(checkpoint.prefix(), ": ", match.source.key, match.stored.ToString(),
                                                 " for ", match.variable, match.shape.ToString(), ": ", why));
}

// Plans how to rearrange the tensor for the variable, following a rule that specifies the order of its dimensions.
absl::Status PlanPermutation(const TensorReader& checkpoint, const Match& match, WarmStartPlan::Load* load) {
  const std::vector<int>& permutation = match.source.permutation;
  if (match.stored.rank() != static_cast<int>(permutation.size())) {
    return Refuse(checkpoint, match,
                  absl::StrCat("the tensor has ", match.stored.rank(), " dimensions, its rule orders ",
                               permutation.size(), "; transpose is for matrices, permutation for any rank"));
  }
  const Shape permuted = Permuted(match.stored, permutation);
  if (permuted != match.shape) {
    return Refuse(checkpoint, match, absl::StrCat("in the order of its rule it is ", permuted.ToString()));
  }
  load->permutation = permutation;
  load->stored = match.stored;
  return absl::OkStatus();
}

// Returns true if the order of the dimensions affects the order of the elements.
bool OrderMatters(const Shape& shape) {
  return absl::c_count_if(shape.dims(), [](int64_t dim) { return dim > 1; }) > 1;
}

// Checks whether a tensor from another program's file could be in PyTorch's order of dimensions, if its rule does not
// specify the order. `fits` is true if the tensor can be loaded without reordering.
absl::Status CheckOrder(const TensorReader& checkpoint, const Match& match, bool fits, WarmStartReport* report) {
  const std::vector<int> order = PytorchPermutation(match.stored.rank());
  const bool is_foreign = FormatOfPath(checkpoint.prefix()).has_value();
  if (!is_foreign || match.source.has_order || order.empty() || !OrderMatters(match.stored) ||
      Permuted(match.stored, order) != match.shape) {
    return absl::OkStatus();
  }
  const std::string how = match.stored.rank() == 2 ? std::string("transpose: true")
                                                   : absl::StrCat("permutation: [", absl::StrJoin(order, ", "), "]");
  const std::string rule = absl::StrCat("rename { variable: \"", match.variable, "\" key: \"", match.source.key, "\" ");
  if (!fits) return Refuse(checkpoint, match, absl::StrCat("it fits in PyTorch's order: ", rule, how, " }"));
  const std::string both = absl::StrCat("it fits as it is, and in PyTorch's order ([outputs, inputs]); say ", rule, how,
                                        " }, or transpose: false to load it as it is");
  if (absl::EndsWith(match.source.key, ".weight")) return Refuse(checkpoint, match, both);
  report->AddWarning(absl::StrCat(match.variable, " from ", match.source.key, ": ", both));
  return absl::OkStatus();
}

// Returns a text that lists the first few names of the checkpoint's tensors.
std::string SomeNames(const TensorReader& checkpoint) {
  std::vector<std::string> names = checkpoint.names();
  const size_t count = names.size();
  if (count == 0) return "it has none at all";
  names.resize(std::min(count, kShownNames));
  return absl::StrCat("it has ", absl::StrJoin(names, ", "), count > kShownNames ? ", ..." : "");
}

}  // namespace

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
    Match match;
    match.variable = variable.name();
    match.source = rules.SourceOf(variable.name());
    const std::string& key = match.source.key;
    if (!checkpoint.Contains(key)) {
      report.AddMissing(variable.name(), key);
      continue;
    }
    ASSIGN_OR_RETURN(match.shape, Shape::Create(variable.shape()));
    ASSIGN_OR_RETURN(const TensorReader::Entry entry, checkpoint.Describe(key));
    match.stored = entry.shape;
    WarmStartPlan::Load load = {i, key};
    std::string how;
    if (!match.source.permutation.empty()) {
      RETURN_IF_ERROR(PlanPermutation(checkpoint, match, &load));
      how = absl::StrCat(", rearranged from ", entry.shape.ToString());
    } else if (entry.shape != match.shape && rules.reshape()) {
      load.reshaped = entry.shape.num_elements() == match.shape.num_elements();
      if (load.reshaped) how = absl::StrCat(", reshaped from ", entry.shape.ToString());
    }
    const bool is_other = load.reshaped || !load.permutation.empty();
    RETURN_IF_ERROR(CheckOrder(checkpoint, match, entry.shape == match.shape || load.reshaped, &report));
    const v1::DataType dtype = VariableType(variable.dtype());
    if (dtype != v1::DT_FLOAT && !load.permutation.empty()) {
      return Refuse(checkpoint, match, absl::StrCat("only float32 is rearranged, not ", NameOf(dtype)));
    }
    RETURN_IF_ERROR(CheckStoredVariable(checkpoint, key, dtype, is_other ? entry.shape : match.shape));
    plan.loads.push_back(std::move(load));
    report.AddLoaded(variable.name(), match.shape, key, how);
  }
  const std::vector<std::string>& missing = report.missing();
  if (rules.require_all() && !missing.empty()) {
    return absl::NotFoundError(absl::StrCat(checkpoint.prefix(), " lacks ", absl::StrJoin(missing, ", ")));
  }
  if (plan.loads.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        checkpoint.prefix(), " has none of the model's variables that are to be loaded",
        missing.empty() ? "" : absl::StrCat(", ", missing.front(), " for one"), "; ", SomeNames(checkpoint)));
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

absl::Status ReadLoad(const TensorReader& checkpoint, const WarmStartPlan::Load& load, absl::Span<float> out) {
  std::vector<float> stored(load.permutation.empty() ? 0 : out.size());
  const absl::Span<float> in = load.permutation.empty() ? out : absl::MakeSpan(stored);
  RETURN_IF_ERROR(
      checkpoint.ReadInto(load.key, absl::MakeSpan(reinterpret_cast<char*>(in.data()), in.size() * sizeof(float))));
  if (!load.permutation.empty()) Permute(load.stored, load.permutation, stored, out);
  return absl::OkStatus();
}

absl::Status CheckValues(const WarmStart& start) {
  for (const WarmStartPlan::Load& load : start.plan.loads) {
    const auto value = start.checkpoint->Read(load.key);
    if (!value.ok()) return InField("checkpoint.warm_start", value.status());
    absl::Status checked;
    if (value->dtype() == v1::DT_FLOAT) checked = CheckFinite(*start.checkpoint, load.key, value->flat<float>());
    if (value->dtype() == v1::DT_BOOL) checked = CheckBools(*start.checkpoint, load.key, value->bytes());
    if (!checked.ok()) return InField("checkpoint.warm_start", checked);
  }
  return absl::OkStatus();
}

}  // namespace lockstep

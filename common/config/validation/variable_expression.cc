#include "lockstep/common/config/validation/variable_expression.h"

#include "absl/strings/str_cat.h"
#include "re2/re2.h"

namespace lockstep {
namespace {

absl::Status CheckCompiled(const RE2& compiled) {
  if (compiled.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("is \"", compiled.pattern(), "\", not a regular expression: ", compiled.error()));
}

}  // namespace

absl::Status CheckVariableExpression(const std::string& expression) {
  return CheckCompiled(RE2(expression, RE2::Quiet));
}

absl::StatusOr<std::vector<int>> FindTrainableVariables(const std::string& expression, const v1::ModelSpec& model) {
  const RE2 compiled(expression, RE2::Quiet);
  if (const absl::Status status = CheckCompiled(compiled); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("variables ", status.message()));
  }
  std::vector<int> found;
  for (int i = 0; i < model.variables_size(); ++i) {
    const v1::VariableSpec& variable = model.variables(i);
    if (variable.trainable() && RE2::PartialMatch(variable.name(), compiled)) found.push_back(i);
  }
  if (found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variables is \"", expression, "\", which matches no trainable variable"));
  }
  return found;
}

}  // namespace lockstep

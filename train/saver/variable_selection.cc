#include "lockstep/train/saver/variable_selection.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "re2/re2.h"

namespace lockstep::train {
namespace {

using Expressions = std::vector<std::unique_ptr<RE2>>;

absl::StatusOr<std::unique_ptr<RE2>> Compile(const std::string& expression) {
  auto compiled = std::make_unique<RE2>(expression, RE2::Quiet);
  if (compiled->ok()) return compiled;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", expression, "\" is not a regular expression: ", compiled->error()));
}

absl::StatusOr<Expressions> CompileAll(absl::Span<const std::string> expressions) {
  Expressions all;
  for (const std::string& expression : expressions) {
    ASSIGN_OR_RETURN(auto compiled, Compile(expression));
    all.push_back(std::move(compiled));
  }
  return all;
}

// Returns TensorFlow's name of a variable's value.
std::string FullName(const std::string& variable) { return absl::StrCat(variable, ":0"); }

bool Matches(const RE2& expression, const std::string& variable, bool search) {
  const std::string name = FullName(variable);
  return expression.Match(name, 0, name.size(), search ? RE2::UNANCHORED : RE2::ANCHOR_START, nullptr, 0);
}

bool AnyMatches(const Expressions& expressions, const std::string& variable, bool search) {
  return std::any_of(expressions.begin(), expressions.end(),
                     [&](const std::unique_ptr<RE2>& expression) { return Matches(*expression, variable, search); });
}

}  // namespace

std::vector<std::string> VariableNames(const v1::ModelSpec& model) {
  std::vector<std::string> names;
  for (const v1::VariableSpec& variable : model.variables()) names.push_back(variable.name());
  return names;
}

absl::StatusOr<std::vector<std::string>> GetModelVariables(const v1::ModelSpec& model,
                                                           const absl::optional<std::string>& scope,
                                                           const absl::optional<std::string>& suffix) {
  return GetVariables(VariableNames(model), scope, suffix);
}

absl::StatusOr<std::vector<std::string>> FilterVariables(absl::Span<const std::string> variables,
                                                         const absl::optional<std::vector<std::string>>& include,
                                                         const absl::optional<std::vector<std::string>>& exclude,
                                                         bool search) {
  ASSIGN_OR_RETURN(const Expressions included, CompileAll(include.value_or(std::vector<std::string>())));
  ASSIGN_OR_RETURN(const Expressions excluded, CompileAll(exclude.value_or(std::vector<std::string>())));
  std::vector<std::string> selected;
  for (const std::string& variable : variables) {
    if (include.has_value() && !AnyMatches(included, variable, search)) continue;
    if (!AnyMatches(excluded, variable, search)) selected.push_back(variable);
  }
  return selected;
}

absl::StatusOr<std::vector<std::string>> GetVariables(absl::Span<const std::string> variables,
                                                      const absl::optional<std::string>& scope,
                                                      const absl::optional<std::string>& suffix) {
  std::string expression = scope.value_or("");
  if (suffix.has_value()) {
    absl::StrAppend(&expression, ".*", *suffix, suffix->find(':') == std::string::npos ? ":" : "");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<RE2> compiled, Compile(expression));
  std::vector<std::string> selected;
  for (const std::string& variable : variables) {
    if (Matches(*compiled, variable, /*search=*/false)) selected.push_back(variable);
  }
  return selected;
}

absl::StatusOr<std::vector<std::string>> GetVariablesBySuffix(absl::Span<const std::string> variables,
                                                              const std::string& suffix,
                                                              const absl::optional<std::string>& scope) {
  return GetVariables(variables, scope, suffix);
}

absl::StatusOr<std::vector<std::string>> GetVariablesByName(absl::Span<const std::string> variables,
                                                            const std::string& name,
                                                            const absl::optional<std::string>& scope) {
  // The second alternative matches a variable whose whole name is `name`, regardless of the scope.
  return GetVariables(variables, scope, absl::StrCat("/", name, ":|^", name, ":"));
}

absl::StatusOr<std::string> GetUniqueVariable(absl::Span<const std::string> variables, const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<std::string> candidates, GetVariables(variables, name));
  if (candidates.empty()) return absl::InvalidArgumentError(absl::StrCat("there is no variable ", name));
  if (std::find(candidates.begin(), candidates.end(), name) != candidates.end()) return name;
  return absl::InvalidArgumentError(absl::StrCat(name, " does not uniquely identify a variable: there is ",
                                                 candidates.front(), ", and none of that name"));
}

absl::StatusOr<std::vector<std::string>> GetVariablesToRestore(
    absl::Span<const std::string> variables, const absl::optional<std::vector<std::string>>& include,
    const absl::optional<std::vector<std::string>>& exclude) {
  std::vector<std::string> included(variables.begin(), variables.end());
  if (include.has_value()) included.clear();
  for (const std::string& scope : include.value_or(std::vector<std::string>())) {
    ASSIGN_OR_RETURN(const std::vector<std::string> found, GetVariables(variables, scope));
    included.insert(included.end(), found.begin(), found.end());
  }
  std::set<std::string> excluded;
  for (const std::string& scope : exclude.value_or(std::vector<std::string>())) {
    ASSIGN_OR_RETURN(const std::vector<std::string> found, GetVariables(variables, scope));
    excluded.insert(found.begin(), found.end());
  }
  included.erase(std::remove_if(included.begin(), included.end(),
                                [&](const std::string& variable) { return excluded.count(variable) > 0; }),
                 included.end());
  return included;
}

}  // namespace lockstep::train

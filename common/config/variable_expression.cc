#include "common/config/variable_expression.h"

#include <regex>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// std::regex recurses.
constexpr size_t kMaxCharacters = 1000;

absl::StatusOr<std::regex> Compile(const std::string& expression) {
  if (expression.size() > kMaxCharacters) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", expression.size(), " characters, must have at most ", kMaxCharacters));
  }
  try {  // std::regex has no other way to say it.
    return std::regex(expression, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    return absl::InvalidArgumentError(absl::StrCat("is \"", expression, "\", not a regular expression: ", e.what()));
  }
}

}  // namespace

absl::Status CheckVariableExpression(const std::string& expression) { return Compile(expression).status(); }

absl::StatusOr<std::vector<int>> FindTrainableVariables(const std::string& expression, const ModelSpec& model) {
  const absl::StatusOr<std::regex> compiled = Compile(expression);
  if (!compiled.ok()) return absl::InvalidArgumentError(absl::StrCat("variables ", compiled.status().message()));
  std::vector<int> found;
  for (int i = 0; i < model.variables_size(); ++i) {
    const VariableSpec& variable = model.variables(i);
    if (variable.trainable() && std::regex_search(variable.name(), *compiled)) found.push_back(i);
  }
  if (found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variables is \"", expression, "\", which matches no trainable variable"));
  }
  return found;
}

}  // namespace lockstep

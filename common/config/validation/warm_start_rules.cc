#include "lockstep/common/config/validation/warm_start_rules.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/validation/variable_expression.h"

namespace lockstep {
namespace {

absl::StatusOr<std::unique_ptr<RE2>> Compile(const std::string& field, const std::string& expression) {
  if (expression.empty()) return absl::InvalidArgumentError(absl::StrCat(field, " is empty"));
  if (const absl::Status status = CheckVariableExpression(expression); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(field, " ", status.message()));
  }
  return std::make_unique<RE2>(expression, RE2::Quiet);
}

absl::StatusOr<std::vector<std::unique_ptr<RE2>>> CompileAll(
    absl::string_view field, const google::protobuf::RepeatedPtrField<std::string>& expressions) {
  std::vector<std::unique_ptr<RE2>> compiled;
  for (int i = 0; i < expressions.size(); ++i) {
    ASSIGN_OR_RETURN(auto expression, Compile(absl::StrCat(field, "[", i, "]"), expressions[i]));
    compiled.push_back(std::move(expression));
  }
  return compiled;
}

bool AnyMatchesStart(const std::vector<std::unique_ptr<RE2>>& expressions, const std::string& name) {
  return std::any_of(expressions.begin(), expressions.end(), [&](const std::unique_ptr<RE2>& expression) {
    re2::StringPiece rest = name;
    return RE2::Consume(&rest, *expression);
  });
}

}  // namespace

absl::StatusOr<WarmStartRules> WarmStartRules::Create(const config::v1::WarmStartVariables& config) {
  WarmStartRules rules;
  ASSIGN_OR_RETURN(rules.include_, CompileAll("include", config.include()));
  ASSIGN_OR_RETURN(rules.exclude_, CompileAll("exclude", config.exclude()));
  for (int i = 0; i < config.rename_size(); ++i) {
    const config::v1::WarmStartVariables::Rename& rename = config.rename(i);
    const std::string field = absl::StrCat("rename[", i, "]");
    RETURN_IF_ERROR(Compile(absl::StrCat(field, ".variable"), rename.variable()).status());
    ASSIGN_OR_RETURN(auto expression,
                     Compile(absl::StrCat(field, ".variable"), absl::StrCat("^(?:", rename.variable(), ")$")));
    std::string why;
    if (rename.key().empty()) {
      why = "is empty";
    } else if (!expression->CheckRewriteString(rename.key(), &why)) {
      why = absl::StrCat("is \"", rename.key(), "\": ", why);
    }
    if (!why.empty()) return absl::InvalidArgumentError(absl::StrCat(field, ".key ", why));
    rules.rename_.emplace_back(std::move(expression), rename.key());
  }
  rules.require_all_ = config.require_all();
  rules.reshape_ = config.reshape();
  return rules;
}

bool WarmStartRules::Selects(const std::string& variable) const {
  return (include_.empty() || AnyMatchesStart(include_, variable)) && !AnyMatchesStart(exclude_, variable);
}

std::string WarmStartRules::KeyOf(const std::string& variable) const {
  std::string found;
  for (const auto& [whole_name, key] : rename_) {
    if (RE2::Extract(variable, *whole_name, key, &found)) return found;
  }
  return variable;
}

}  // namespace lockstep

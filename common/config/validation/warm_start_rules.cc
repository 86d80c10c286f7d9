#include "lockstep/common/config/validation/warm_start_rules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// Returns the permutation that a rule specifies, or an empty one.
absl::StatusOr<std::vector<int>> PermutationOf(const std::string& field,
                                               const config::v1::WarmStartVariables::Rename& rename) {
  std::vector<int> permutation(rename.permutation().begin(), rename.permutation().end());
  if (permutation.empty()) return rename.transpose() ? std::vector<int>{1, 0} : permutation;
  if (rename.has_transpose()) {
    return absl::InvalidArgumentError(absl::StrCat(field, " has both transpose and permutation"));
  }
  std::vector<int> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == static_cast<int>(i)) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, ".permutation is [", absl::StrJoin(permutation, ", "),
                                                   "], must have each number from 0 to ", sorted.size() - 1, " once"));
  }
  return permutation;
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
    ASSIGN_OR_RETURN(std::vector<int> permutation, PermutationOf(field, rename));
    const bool has_order = rename.has_transpose() || !permutation.empty();
    rules.rename_.push_back({std::move(expression), {rename.key(), std::move(permutation), has_order}});
  }
  rules.require_all_ = config.require_all();
  rules.reshape_ = config.reshape();
  return rules;
}

bool WarmStartRules::Selects(const std::string& variable) const {
  return (include_.empty() || AnyMatchesStart(include_, variable)) && !AnyMatchesStart(exclude_, variable);
}

WarmStartRules::Source WarmStartRules::SourceOf(const std::string& variable) const {
  for (const Rename& rename : rename_) {
    Source source = rename.source;
    if (RE2::Extract(variable, *rename.variable, rename.source.key, &source.key)) return source;
  }
  return {variable, {}, false};
}

}  // namespace lockstep

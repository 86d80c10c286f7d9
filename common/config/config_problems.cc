#include "common/config/config_problems.h"

#include <regex>

#include "absl/strings/str_join.h"

namespace lockstep {
namespace {
// std::regex recurses.
constexpr size_t kMaxExpression = 1000;
}  // namespace

void ConfigProblems::RequireExpression(absl::string_view field, const std::string& value) {
  if (value.empty()) return Add(field, "is empty, \".*\" stands for every variable");
  if (value.size() > kMaxExpression) {
    return Add(field, absl::StrCat("has ", value.size(), " characters, must have at most ", kMaxExpression));
  }
  try {  // std::regex has no other way to say it.
    std::regex(value, std::regex::ECMAScript);
  } catch (const std::regex_error& e) {
    Add(field, absl::StrCat("is \"", value, "\", not a regular expression: ", e.what()));
  }
}

absl::Status ConfigProblems::ToStatus() const {
  if (lines_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
}

}  // namespace lockstep

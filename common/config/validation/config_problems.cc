#include "lockstep/common/config/validation/config_problems.h"

#include "absl/strings/str_join.h"
#include "lockstep/common/config/validation/variable_expression.h"

namespace lockstep {

void ConfigProblems::RequireExpression(absl::string_view field, const std::string& value) {
  if (value.empty()) return Add(field, "is empty, \".*\" stands for every variable");
  const absl::Status status = CheckVariableExpression(value);
  if (!status.ok()) Add(field, status.message());
}

absl::Status ConfigProblems::ToStatus() const {
  if (lines_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
}

}  // namespace lockstep

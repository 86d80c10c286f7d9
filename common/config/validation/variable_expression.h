#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_VARIABLE_EXPRESSION_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_VARIABLE_EXPRESSION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// A regular expression in the configuration selects the variables whose names contain a match. The syntax is that of
// RE2, so matching takes linear time for any expression. Thread-safe.

// Returns InvalidArgument if the expression is malformed or too large to compile. The message is worded to follow the
// field's name.
absl::Status CheckVariableExpression(const std::string& expression);

// Returns the indices of the trainable variables that the expression matches, ascending. `expression` is the value of a
// field `variables`. InvalidArgument if it is malformed or matches no variable.
absl::StatusOr<std::vector<int>> FindTrainableVariables(const std::string& expression, const v1::ModelSpec& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_VARIABLE_EXPRESSION_H_

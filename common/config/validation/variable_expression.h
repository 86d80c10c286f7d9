#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_VARIABLE_EXPRESSION_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_VARIABLE_EXPRESSION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// A regular expression in the configuration that names variables: all those in whose name it is found. The syntax is
// RE2's, so that matching takes linear time, whatever the expression. Thread-safe.

// InvalidArgument when it is malformed, or too large to be compiled; the message continues the field's name.
absl::Status CheckVariableExpression(const std::string& expression);

// The indices of the trainable variables that it names, ascending. `expression` is a field `variables`.
// InvalidArgument when it is malformed or names none.
absl::StatusOr<std::vector<int>> FindTrainableVariables(const std::string& expression, const v1::ModelSpec& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_VARIABLE_EXPRESSION_H_

#ifndef LOCKSTEP_COMMON_CONFIG_VARIABLE_EXPRESSION_H_
#define LOCKSTEP_COMMON_CONFIG_VARIABLE_EXPRESSION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/variable.pb.h"

namespace lockstep {

// A regular expression (ECMAScript, at most 1000 characters) in the configuration that names variables: all those in
// whose name it is found. Thread-safe.

// InvalidArgument when it is malformed or too long; the message goes on after the field's name.
absl::Status CheckVariableExpression(const std::string& expression);

// The indices of the trainable variables that it names, ascending. `expression` is a field `variables`.
// InvalidArgument when it is malformed or too long, or names none.
absl::StatusOr<std::vector<int>> FindTrainableVariables(const std::string& expression, const ModelSpec& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VARIABLE_EXPRESSION_H_

#ifndef LOCKSTEP_TRAIN_SAVER_VARIABLE_SELECTION_H_
#define LOCKSTEP_TRAIN_SAVER_VARIABLE_SELECTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep::train {

// Functions that choose variables by name, like tf-slim's functions with the same names. Expressions use RE2 syntax. As
// in TensorFlow, they are matched against the name followed by ":0", so "biases:" matches the end of a name, and
// "biases$" matches nothing. A scope is an expression that must match at the start: "conv1" also selects
// "conv10/weights". Results keep the order of `variables`. Errors: InvalidArgument for an expression that does not
// compile, and those documented below.

// Returns the names of a model's variables, in its order. None of them is local.
std::vector<std::string> VariableNames(const v1::ModelSpec& model);

// Like tf_slim's get_model_variables: returns the model's variable names, restricted as in GetVariables.
absl::StatusOr<std::vector<std::string>> GetModelVariables(const v1::ModelSpec& model,
                                                           const absl::optional<std::string>& scope = absl::nullopt,
                                                           const absl::optional<std::string>& suffix = absl::nullopt);

// Returns the variables that match one of `include` (if nullopt, all) and none of `exclude`. With `search`, an
// expression may match anywhere in the name; otherwise it must match at the start.
absl::StatusOr<std::vector<std::string>> FilterVariables(absl::Span<const std::string> variables,
                                                         const absl::optional<std::vector<std::string>>& include,
                                                         const absl::optional<std::vector<std::string>>& exclude,
                                                         bool search = true);

// Returns the variables below `scope` whose name ends in `suffix`, which need not be a whole path component: "a"
// selects "A/fooa". nullopt means no condition.
absl::StatusOr<std::vector<std::string>> GetVariables(absl::Span<const std::string> variables,
                                                      const absl::optional<std::string>& scope = absl::nullopt,
                                                      const absl::optional<std::string>& suffix = absl::nullopt);

// Like GetVariables, but with the suffix first.
absl::StatusOr<std::vector<std::string>> GetVariablesBySuffix(absl::Span<const std::string> variables,
                                                              const std::string& suffix,
                                                              const absl::optional<std::string>& scope = absl::nullopt);

// Returns the variables whose last path component is `name`; "/a" selects none. As in tf-slim, a variable that is
// called `name` and is not in a scope is selected whatever `scope` is.
absl::StatusOr<std::vector<std::string>> GetVariablesByName(absl::Span<const std::string> variables,
                                                            const std::string& name,
                                                            const absl::optional<std::string>& scope = absl::nullopt);

// Returns the variable with that name. Returns InvalidArgument if there is none, even if there are variables below the
// name.
absl::StatusOr<std::string> GetUniqueVariable(absl::Span<const std::string> variables, const std::string& name);

// Returns the variables below each scope of `include` (if nullopt, all), scope by scope. A variable appears once for
// each scope that selects it. Variables below a scope of `exclude` are omitted.
absl::StatusOr<std::vector<std::string>> GetVariablesToRestore(
    absl::Span<const std::string> variables, const absl::optional<std::vector<std::string>>& include = absl::nullopt,
    const absl::optional<std::vector<std::string>>& exclude = absl::nullopt);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_VARIABLE_SELECTION_H_

#ifndef LOCKSTEP_TRAIN_SAVER_VARIABLE_SELECTION_H_
#define LOCKSTEP_TRAIN_SAVER_VARIABLE_SELECTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep::train {

// Chooses variables by name, as tf-slim's functions of the same names do. Expressions are RE2's. As in TensorFlow they
// are matched against the name with ":0" behind it, so "biases:" is an ending, and "biases$" matches nothing. A scope
// is an expression that has to match at the start: "conv1" also selects "conv10/weights". Results keep the order of
// `variables`. Errors: InvalidArgument for an expression that does not compile, and as said.

// The names of a model's variables, in its order. None of them is local.
std::vector<std::string> VariableNames(const v1::ModelSpec& model);

// tf_slim's get_model_variables: the same, limited as GetVariables limits them.
absl::StatusOr<std::vector<std::string>> GetModelVariables(const v1::ModelSpec& model,
                                                           const absl::optional<std::string>& scope = absl::nullopt,
                                                           const absl::optional<std::string>& suffix = absl::nullopt);

// Those that match one of `include` (nullopt: all) and none of `exclude`. With `search` an expression may be found
// anywhere in the name, else it has to match at its start.
absl::StatusOr<std::vector<std::string>> FilterVariables(absl::Span<const std::string> variables,
                                                         const absl::optional<std::vector<std::string>>& include,
                                                         const absl::optional<std::vector<std::string>>& exclude,
                                                         bool search = true);

// Those below `scope` whose name ends in `suffix`, which need not be a whole part of the path: "a" selects "A/fooa".
// nullopt: no condition.
absl::StatusOr<std::vector<std::string>> GetVariables(absl::Span<const std::string> variables,
                                                      const absl::optional<std::string>& scope = absl::nullopt,
                                                      const absl::optional<std::string>& suffix = absl::nullopt);

// The same with the suffix first.
absl::StatusOr<std::vector<std::string>> GetVariablesBySuffix(absl::Span<const std::string> variables,
                                                              const std::string& suffix,
                                                              const absl::optional<std::string>& scope = absl::nullopt);

// Those whose last part of the path is `name`; "/a" selects none. As in tf-slim a variable that is called `name` and
// lies in no scope is selected whatever `scope` is.
absl::StatusOr<std::vector<std::string>> GetVariablesByName(absl::Span<const std::string> variables,
                                                            const std::string& name,
                                                            const absl::optional<std::string>& scope = absl::nullopt);

// The variable of that name. InvalidArgument when there is none, also when others lie below it.
absl::StatusOr<std::string> GetUniqueVariable(absl::Span<const std::string> variables, const std::string& name);

// Those below each scope of `include` (nullopt: all), one after the other and once for each scope that selects them,
// without those below a scope of `exclude`.
absl::StatusOr<std::vector<std::string>> GetVariablesToRestore(
    absl::Span<const std::string> variables, const absl::optional<std::vector<std::string>>& include = absl::nullopt,
    const absl::optional<std::vector<std::string>>& exclude = absl::nullopt);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_VARIABLE_SELECTION_H_

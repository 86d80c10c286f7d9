#ifndef LOCKSTEP_SERVER_OPTIMIZER_OPTIMIZER_GROUPS_H_
#define LOCKSTEP_SERVER_OPTIMIZER_OPTIMIZER_GROUPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/server/optimizer/optimizer.h"

namespace lockstep {

// The optimizers of a run's trained variables, with their learning rates. Group 0 has the rule of OptimizerConfig and
// the variables that no `group` matches; group i + 1 has the rule and the variables of group[i]. For each step, call
// BeginStep, then RuleOf's Apply for every segment, then EndStep. Several threads may call const methods between
// BeginStep and EndStep; otherwise not thread-safe.
class OptimizerGroups {
 public:
  // Returns InvalidArgument, naming the field that is out of range, the group that matches no trained variable, or the
  // variable that two groups match.
  static absl::StatusOr<std::unique_ptr<OptimizerGroups>> Create(const config::v1::OptimizerConfig& config,
                                                                 const ParameterLayout& layout);

  size_t size() const { return groups_.size(); }
  // The group of a trained variable.
  size_t GroupOf(int variable) const { return group_of_[variable]; }
  const Optimizer& RuleOf(int variable) const { return *groups_[group_of_[variable]].rule; }
  // The states of each variable in the layout: those of its rule, but without the moving average if the variable has
  // none. An untrained variable has no states.
  std::vector<std::vector<Optimizer::State>> StatesOfVariables() const;

  // Returns the limit clip.mean_by_global_norm of a group that has its own clip. The variables of all other groups
  // share the limit of group 0. Returns 0 if the norm is not limited.
  float MeanLimit(size_t group) const { return groups_[group].mean_limit; }
  // Returns the group whose limit applies to the variables of `group`: either `group` or 0.
  size_t ClipGroupOf(size_t group) const { return groups_[group].has_clip ? group : 0; }
  bool ClipsMeans() const;

  // Begins the update from `step` to step + 1, with each group's learning rate of that step.
  void BeginStep(int64_t step);
  void EndStep();
  // The learning rate of a group in the latest update.
  float learning_rate(size_t group = 0) const { return groups_[group].rate; }
  // Returns the name of a registered schedule whose rate in the latest update is not finite, if any.
  absl::optional<std::string> FindNonFiniteRate() const;

  // Return and restore the scalars of all rules. If several rules have a scalar of the same name, all but the first get
  // a number appended, as in TensorFlow's names for the variables of several optimizers: beta1_power, beta1_power_1. A
  // group without its own rule shares the scalars of group 0.
  std::vector<OptimizerScalar> scalars() const;
  void RestoreScalars(absl::Span<const OptimizerScalar> scalars);

 private:
  struct Group {
    std::unique_ptr<Optimizer> rule;
    config::v1::LearningRate learning_rate;
    float rate_factor = 1;
    bool has_clip = false;
    float mean_limit = 0;
    // The group whose scalars the rule uses: this group or 0.
    size_t scalars_of = 0;
    bool has_variables = false;
    // True if only selected variables of the group have moving averages.
    bool averages_selected = false;
    float rate = 0;  // of the latest update
  };

  OptimizerGroups() = default;
  absl::Status AddGroup(const config::v1::OptimizerConfig& config, int index);
  // Assigns the matching variables to group[index]. They must not be in another group yet.
  absl::Status AddVariables(const config::v1::OptimizerConfig& config, int index, const ParameterLayout& layout);
  // Finds the variables that optimizer.moving_average selects.
  absl::Status SelectAveraged(const config::v1::OptimizerConfig& config, const ParameterLayout& layout);
  // Returns true if a variable's rule uses the scalars of `group`.
  bool HasScalars(size_t group) const;

  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  // by variable
  std::vector<bool> trained_;     // by variable
  // True for the variables that match optimizer.moving_average.variables, or for all if there are none.
  std::vector<bool> selected_;
};

// Returns InvalidArgument if the optimizers after a change keep different state for a variable than before.
absl::Status CheckSameState(const OptimizerGroups& before, const OptimizerGroups& after);
// Compares the optimizers of two configurations. Returns InvalidArgument if one is invalid, if they keep different
// state, or if their groups do not have the same variables and rules of the same kind.
absl::Status CheckSameState(const config::v1::OptimizerConfig& before, const config::v1::OptimizerConfig& after);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_OPTIMIZER_GROUPS_H_

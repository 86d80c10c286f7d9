#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_OPTIMIZER_GROUP_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_OPTIMIZER_GROUP_H_

#include "lockstep/config/v1/optimizer.pb.h"

namespace lockstep {

// Returns true if the optimizer has a rule. A group's optimizer may have none.
bool HasKind(const config::v1::OptimizerConfig& optimizer);

// Returns true if the rule has a weight_decay.
bool HasWeightDecay(const config::v1::OptimizerConfig& optimizer);

// Returns the optimizer for a group's variables: the group's settings, completed by those of `whole`. The clip is the
// group's only, and there are no groups or multipliers. `group` must be valid.
config::v1::OptimizerConfig OptimizerOfGroup(const config::v1::OptimizerConfig& whole,
                                             const config::v1::OptimizerConfig::Group& group);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_OPTIMIZER_GROUP_H_

#ifndef LOCKSTEP_SERVER_PS_VERSIONS_CHECKPOINT_KEYS_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_CHECKPOINT_KEYS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/optimizer/optimizer.h"

namespace lockstep {

// The keys under which a checkpoint keeps what belongs to a run, in addition to the variables under their own names and
// the optimizer's scalars under theirs; kGlobalStepKey is in common/checkpoint.

// An optimizer slot of a variable, as TensorFlow names it: "hidden1/kernel/Adam".
std::string OptimizerStateKey(absl::string_view variable, absl::string_view slot);
// The estimate of the gradient of one of a step's slots: "hidden1/kernel/GradientEstimate_0".
std::string GradientEstimateKey(absl::string_view variable, int64_t slot);

// InvalidArgument when a variable of the model has a name that a checkpoint cannot hold, or under which it keeps
// something else: global_step, a scalar of the optimizer, or a slot or one of `estimates` estimates of another
// variable, which the error names too.
absl::Status CheckCheckpointKeys(const ParameterLayout& layout, const Optimizer& optimizer, int64_t estimates);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_CHECKPOINT_KEYS_H_

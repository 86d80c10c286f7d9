#ifndef LOCKSTEP_SERVER_PS_VERSIONS_CHECKPOINT_KEYS_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_CHECKPOINT_KEYS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/checkpoint/bundle/stored_variable.h"
#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/server/optimizer/optimizer_groups.h"

namespace lockstep {

// The keys of a run's state in a checkpoint. Variables and the optimizer's scalars have their own names as keys;
// kGlobalStepKey is in common/checkpoint.

// Returns the key of an optimizer slot of a variable, as TensorFlow names it: "hidden1/kernel/Adam".
std::string OptimizerStateKey(absl::string_view variable, absl::string_view slot);
// Returns the key of the gradient estimate of one of a step's slots: "hidden1/kernel/GradientEstimate_0".
std::string GradientEstimateKey(absl::string_view variable, int64_t slot);

// Returns InvalidArgument if a checkpoint cannot hold the name of a variable, or if the name is already another key of
// the checkpoint: global_step, the stream positions, the session state, a scalar of an optimizer, or a slot or one of
// the `estimates` estimates of another variable. In the last case, the error also names that variable.
absl::Status CheckCheckpointKeys(const ParameterLayout& layout, const OptimizerGroups& optimizers, int64_t estimates);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_CHECKPOINT_KEYS_H_

#ifndef LOCKSTEP_SERVER_SYNC_POLICY_POLICY_FACTORY_H_
#define LOCKSTEP_SERVER_SYNC_POLICY_POLICY_FACTORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/common/tensor/parameter_layout.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/server/sync/policy/step_policy.h"

namespace lockstep {

// Returns the policy of a run with this configuration and these variables, at global step `step`. `stream_positions`
// are those of RestoredVariables.
std::unique_ptr<StepPolicy> NewStepPolicy(const config::v1::RunSpec& config, const ParameterLayout& layout,
                                          int64_t step, std::vector<int64_t> stream_positions = {});

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_SYNC_POLICY_POLICY_FACTORY_H_

#ifndef LOCKSTEP_COMMON_STEP_TRAINING_POLICY_H_
#define LOCKSTEP_COMMON_STEP_TRAINING_POLICY_H_

#include <cstdint>
#include <string>

#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Texts and rules that follow from a run's policy, which determines the contributions of each step (docs/sync.md).

// Returns "DETERMINISTIC", "FIRST_ARRIVALS" or "ASYNC".
std::string PolicyName(const config::v1::TrainingConfig& training);

// Returns one sentence for the log that states the policy and what the run does not promise under it.
std::string PolicyText(const config::v1::TrainingConfig& training);

// Returns true if batches belong to the workers' input streams, and false if they belong to slots of steps.
bool ReadsStreams(const config::v1::TrainingConfig& training);

// Returns the number of batches in one global batch of the input: R, or 1 in a stream.
int64_t BatchesTogether(const config::v1::TrainingConfig& training);

// Returns the number of contributions that the chief may stage at the same time, each of at most `bytes`; 0 if the
// policy stages none.
int64_t StagedContributions(const config::v1::RunSpec& config, uint64_t bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_TRAINING_POLICY_H_

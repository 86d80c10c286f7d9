#ifndef LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_
#define LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/optimizer.pb.h"

namespace lockstep {

// InvalidArgument names the field of a schedule that is out of its range.
absl::Status ValidateLearningRate(const LearningRate& config);

// The rate of the update that takes the global step from `step` to `step` + 1. The formulas stand in
// proto/optimizer.proto; computed in double, rounded once. `config` must be valid. A pure function.
float LearningRateAt(const LearningRate& config, int64_t step);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_

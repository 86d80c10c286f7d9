#ifndef LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_
#define LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "lockstep/config/v1/optimizer.pb.h"

namespace lockstep {

// Returns the rate of the update that takes the global step from `step` to `step` + 1.
// proto/lockstep/config/v1/optimizer.proto has the formulas; they are computed in double and rounded once. `config`
// must be valid (ValidateRunSpec), and a schedule that it names must be registered. A pure function. Only a registered
// schedule may return a rate that is negative or not finite.
float LearningRateAt(const config::v1::LearningRate& config, int64_t step);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_LEARNING_RATE_H_

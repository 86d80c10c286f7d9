#ifndef LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_
#define LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_

#include "proto/config.pb.h"

namespace lockstep {

// Writes the default of every number, text and initializer that is absent and has one (the protos say which), so
// that a recorded configuration says by itself what ran. Idempotent. What follows from the data or from other
// layers stays absent: inputs of layers and losses, metrics; and so do parts that are off.
void ApplyDefaults(RunConfig* config);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_

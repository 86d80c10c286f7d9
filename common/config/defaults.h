#ifndef LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_
#define LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_

#include "lockstep/config/v1/model.pb.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Writes the default of every number, text and initializer that is absent and has one (the protos say which), so
// that a recorded configuration says by itself what ran. Idempotent. What follows from the data or from other
// layers stays absent: inputs of layers and losses, metrics; and so do parts that are off.
void ApplyDefaults(config::v1::RunSpec* config);

// The same for the parts that are used by themselves, too.
void ApplyLayerDefaults(config::v1::Layer* layer);
void ApplyOptimizerDefaults(config::v1::OptimizerConfig* optimizer);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_

#ifndef LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_
#define LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_

#include "lockstep/config/v1/model.pb.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Sets each absent number, string and initializer to its default, if it has one (see the protos), so that a recorded
// configuration fully describes the run. Idempotent. Does not add disabled parts, or fields that are derived from the
// data or from other layers (inputs of layers and losses, metrics).
void ApplyDefaults(config::v1::RunSpec* config);

// Returns the Glorot uniform initializer, the default for kernels.
v1::Initializer Glorot();

// These functions apply the defaults of parts that are also used on their own.
void ApplyLayerDefaults(config::v1::Layer* layer);
void ApplyOptimizerDefaults(config::v1::OptimizerConfig* optimizer);
// The defaults of first_arrivals depend on replicas_to_aggregate.
void ApplyPolicyDefaults(config::v1::TrainingConfig* training);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_DEFAULTS_H_

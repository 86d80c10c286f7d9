#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_H_

#include "absl/status/status.h"
#include "proto/config.pb.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace lockstep {

// All return InvalidArgument with one line for each problem: the field's path, its value, what it must be.
// Absent fields stand for their defaults. Pure functions: nobody looks whether a file exists.

// A whole configuration. It may lack a model (a worker brings its own) and then also the input.
absl::Status ValidateRunConfig(const RunConfig& config);

// The parts that others check by themselves, too.
absl::Status ValidateOptimizerRule(const OptimizerConfig& config);  // kind and its numbers
absl::Status ValidateLearningRate(const LearningRate& config);
absl::Status ValidateInitializer(const Initializer& initializer);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_H_

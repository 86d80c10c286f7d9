#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_VALIDATION_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_VALIDATION_H_

#include "absl/status/status.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// All functions return InvalidArgument with one line per problem: the field's path, its value, what it must be. Absent
// fields have their defaults. Pure functions: they do not check that files exist.

// Validates a complete configuration. It may lack a model (a worker may bring its own) and then also the input.
absl::Status ValidateRunSpec(const config::v1::RunSpec& config);

// Validate parts that are also checked on their own.
absl::Status ValidateOptimizerRule(const config::v1::OptimizerConfig& config);  // kind and its numbers
absl::Status ValidateLearningRate(const config::v1::LearningRate& rate);
absl::Status ValidateInitializer(const v1::Initializer& initializer);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_VALIDATION_H_

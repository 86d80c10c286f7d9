#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_VALIDATION_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_VALIDATION_H_

#include "absl/status/status.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/variable.pb.h"

namespace lockstep {

// All functions return InvalidArgument with one line per problem: the field's path, its value, and the requirement.
// Absent fields have their defaults. The functions are pure and do not check that files exist.

// Validates a complete configuration. The model may be absent, because a worker may supply its own. In that case the
// input may be absent too.
absl::Status ValidateRunSpec(const config::v1::RunSpec& config);

// These functions validate parts that are also checked on their own.
absl::Status ValidateOptimizerRule(const config::v1::OptimizerConfig& config);  // kind and its numbers
absl::Status ValidateLearningRate(const config::v1::LearningRate& rate);
absl::Status ValidateInitializer(const v1::Initializer& initializer);
// Validates the initializer of a variable, which it names. An integer variable starts at zeros, or at a constant of its
// type.
absl::Status ValidateInitializer(const v1::VariableSpec& variable);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_VALIDATION_H_

#ifndef LOCKSTEP_COMMON_CONFIG_VALIDATION_CHECKS_H_
#define LOCKSTEP_COMMON_CONFIG_VALIDATION_CHECKS_H_

#include "absl/strings/string_view.h"
#include "lockstep/common/config/validation/config_problems.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// The parts of ValidateRunSpec, in one file each. `field` is the path of the part.
void CheckModel(const config::v1::ModelConfig& model, ConfigProblems* problems);
// If `needs_split` is true, there must be a split "train". Otherwise it is required only if the input has other splits.
void CheckInput(const config::v1::InputConfig& input, bool needs_split, ConfigProblems* problems);
void CheckOptimizerRule(const config::v1::OptimizerConfig& optimizer, ConfigProblems* problems);
void CheckLearningRate(const config::v1::LearningRate& rate, ConfigProblems* problems);
void CheckInitializer(absl::string_view field, const v1::Initializer& initializer, ConfigProblems* problems);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_VALIDATION_CHECKS_H_

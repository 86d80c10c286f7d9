#ifndef LOCKSTEP_COMMON_CONFIG_CHECKS_H_
#define LOCKSTEP_COMMON_CONFIG_CHECKS_H_

#include "absl/strings/string_view.h"
#include "common/config/config_problems.h"
#include "proto/config.pb.h"

namespace lockstep {

// The parts of ValidateRunConfig, one file each. `field` is the path of the part.
void CheckModel(const ModelConfig& model, ConfigProblems* problems);
void CheckInput(const InputConfig& input, ConfigProblems* problems);
void CheckOptimizerRule(const OptimizerConfig& optimizer, ConfigProblems* problems);
void CheckLearningRate(const LearningRate& rate, ConfigProblems* problems);
void CheckInitializer(absl::string_view field, const Initializer& initializer, ConfigProblems* problems);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_CHECKS_H_

#ifndef LOCKSTEP_SERVER_OPTIMIZER_RULES_H_
#define LOCKSTEP_SERVER_OPTIMIZER_RULES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/optimizer.pb.h"
#include "server/optimizer/optimizer.h"

namespace lockstep {

// What Optimizer::Create chooses from. Each file holds one rule, its formula and where that comes from.
absl::StatusOr<std::unique_ptr<Optimizer>> CreateSgd(const OptimizerConfig::Sgd& config);
absl::StatusOr<std::unique_ptr<Optimizer>> CreateMomentum(const OptimizerConfig::Momentum& config);
absl::StatusOr<std::unique_ptr<Optimizer>> CreateAdam(const OptimizerConfig::Adam& config);
absl::StatusOr<std::unique_ptr<Optimizer>> CreateAdagrad(const OptimizerConfig::Adagrad& config);
absl::StatusOr<std::unique_ptr<Optimizer>> CreateRmsProp(const OptimizerConfig::RmsProp& config);
absl::StatusOr<std::unique_ptr<Optimizer>> CreateAdadelta(const OptimizerConfig::Adadelta& config);
absl::StatusOr<std::unique_ptr<Optimizer>> CreateFtrl(const OptimizerConfig::Ftrl& config);

// InvalidArgument "optimizer.adam.beta1 is 1.5, must be in [0, 1)" unless it holds.
absl::Status CheckInUnitRange(absl::string_view field, float value);  // [0, 1)
absl::Status CheckPositive(absl::string_view field, float value);     // finite and > 0
absl::Status CheckNotNegative(absl::string_view field, float value);  // finite and >= 0

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_RULES_H_

#include "server/optimizer/optimizer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/optimizer/rules.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(const OptimizerConfig& config) {
  switch (config.kind_case()) {
    case OptimizerConfig::kSgd:
      return CreateSgd(config.sgd());
    case OptimizerConfig::kMomentum:
      return CreateMomentum(config.momentum());
    case OptimizerConfig::kAdam:
      return CreateAdam(config.adam());
    case OptimizerConfig::kAdagrad:
      return CreateAdagrad(config.adagrad());
    case OptimizerConfig::kRmsprop:
      return CreateRmsProp(config.rmsprop());
    case OptimizerConfig::kAdadelta:
      return CreateAdadelta(config.adadelta());
    case OptimizerConfig::kFtrl:
      return CreateFtrl(config.ftrl());
    case OptimizerConfig::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "optimizer has no kind, must have one of sgd, momentum, adam, adagrad, rmsprop, adadelta, ftrl");
}

absl::Status CheckInUnitRange(absl::string_view field, float value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ", must be in [0, 1)"));
}

absl::Status CheckPositive(absl::string_view field, float value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ", must be a finite number above 0"));
}

absl::Status CheckNotNegative(absl::string_view field, float value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, ", must be a finite number, 0 or more"));
}

}  // namespace lockstep

#include "server/optimizer/optimizer.h"

#include "common/base/status_macros.h"
#include "common/config/validation.h"
#include "server/optimizer/rules.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(const OptimizerConfig& config) {
  RETURN_IF_ERROR(ValidateOptimizerRule(config));
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
  return absl::InternalError("an optimizer without a kind passed the validation");
}

}  // namespace lockstep

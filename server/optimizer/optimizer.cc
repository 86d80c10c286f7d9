#include "lockstep/server/optimizer/optimizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/server/optimizer/rules.h"

namespace lockstep {
namespace {

std::string StateNames(absl::Span<const Optimizer::State> states) {
  std::string names;
  for (const Optimizer::State& state : states) absl::StrAppend(&names, names.empty() ? "" : ", ", state.name);
  return names.empty() ? "nothing" : names;
}

// `config` must be valid and complete.
std::unique_ptr<Optimizer> CreateRule(const config::v1::OptimizerConfig& config) {
  switch (config.kind_case()) {
    case config::v1::OptimizerConfig::kSgd:
      return CreateSgd(config.sgd());
    case config::v1::OptimizerConfig::kMomentum:
      return CreateMomentum(config.momentum());
    case config::v1::OptimizerConfig::kAdam:
      return CreateAdam(config.adam());
    case config::v1::OptimizerConfig::kAdagrad:
      return CreateAdagrad(config.adagrad());
    case config::v1::OptimizerConfig::kRmsprop:
      return CreateRmsProp(config.rmsprop());
    case config::v1::OptimizerConfig::kAdadelta:
      return CreateAdadelta(config.adadelta());
    case config::v1::OptimizerConfig::kFtrl:
      return CreateFtrl(config.ftrl());
    case config::v1::OptimizerConfig::kProximalSgd:
      return CreateProximalSgd(config.proximal_sgd());
    case config::v1::OptimizerConfig::kProximalAdagrad:
      return CreateProximalAdagrad(config.proximal_adagrad());
    case config::v1::OptimizerConfig::kAdagradDa:
      return CreateAdagradDa(config.adagrad_da());
    case config::v1::OptimizerConfig::kNadam:
      return CreateNadam(config.nadam());
    case config::v1::OptimizerConfig::kLion:
      return CreateLion(config.lion());
    case config::v1::OptimizerConfig::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(const config::v1::OptimizerConfig& given) {
  RETURN_IF_ERROR(ValidateOptimizerRule(given));
  config::v1::OptimizerConfig config = given;
  ApplyOptimizerDefaults(&config);
  std::unique_ptr<Optimizer> rule = CreateRule(config);
  if (rule == nullptr) return absl::InternalError("an optimizer without a kind passed the validation");
  return config.has_moving_average() ? CreateMovingAverage(config.moving_average(), std::move(rule)) : std::move(rule);
}

absl::Status CheckSameState(absl::Span<const Optimizer::State> before, absl::Span<const Optimizer::State> after) {
  const std::string had = StateNames(before), has = StateNames(after);
  if (had == has) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "optimizer: it would keep ", has, " of each variable, but the run keeps ", had, ", which cannot change"));
}

}  // namespace lockstep

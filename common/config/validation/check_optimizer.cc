#include <cmath>

#include "absl/strings/str_cat.h"
#include "lockstep/common/config/validation/checks.h"
#include "lockstep/common/config/validation/validation.h"

namespace lockstep {
namespace {

void CheckAdam(const config::v1::OptimizerConfig::Adam& adam, ConfigProblems* problems) {
  if (adam.has_beta1()) problems->RequireFraction("optimizer.adam.beta1", adam.beta1());
  if (adam.has_beta2()) problems->RequireFraction("optimizer.adam.beta2", adam.beta2());
  if (adam.has_epsilon()) problems->RequirePositive("optimizer.adam.epsilon", adam.epsilon());
  problems->RequireNotNegative("optimizer.adam.weight_decay", adam.weight_decay());
}

void CheckRmsProp(const config::v1::OptimizerConfig::RmsProp& rmsprop, ConfigProblems* problems) {
  if (rmsprop.has_decay()) problems->RequireFraction("optimizer.rmsprop.decay", rmsprop.decay());
  problems->RequireFraction("optimizer.rmsprop.momentum", rmsprop.momentum());
  if (rmsprop.has_epsilon()) problems->RequirePositive("optimizer.rmsprop.epsilon", rmsprop.epsilon());
}

void CheckAdadelta(const config::v1::OptimizerConfig::Adadelta& adadelta, ConfigProblems* problems) {
  if (adadelta.has_rho()) problems->RequireFraction("optimizer.adadelta.rho", adadelta.rho());
  if (adadelta.has_epsilon()) problems->RequirePositive("optimizer.adadelta.epsilon", adadelta.epsilon());
}

void CheckFtrl(const config::v1::OptimizerConfig::Ftrl& ftrl, ConfigProblems* problems) {
  problems->Require("optimizer.ftrl.learning_rate_power", ftrl.learning_rate_power(), ftrl.learning_rate_power() <= 0,
                    "a finite number, 0 or less");
  problems->RequireNotNegative("optimizer.ftrl.initial_accumulator", ftrl.initial_accumulator());
  problems->RequireNotNegative("optimizer.ftrl.l1", ftrl.l1());
  problems->RequireNotNegative("optimizer.ftrl.l2", ftrl.l2());
}

void CheckPiecewise(const config::v1::LearningRate::Piecewise& piecewise, ConfigProblems* problems) {
  const std::string field = "optimizer.learning_rate.piecewise";
  if (piecewise.values_size() != piecewise.boundaries_size() + 1) {
    problems->Add(field, absl::StrCat("has ", piecewise.values_size(), " values and ", piecewise.boundaries_size(),
                                      " boundaries, must have one value more than boundaries"));
  }
  for (int i = 1; i < piecewise.boundaries_size(); ++i) {
    problems->Require(absl::StrCat(field, ".boundaries[", i, "]"), piecewise.boundaries(i),
                      piecewise.boundaries(i) > piecewise.boundaries(i - 1),
                      absl::StrCat("above the previous one, ", piecewise.boundaries(i - 1)));
  }
  for (int i = 0; i < piecewise.values_size(); ++i) {
    problems->RequireNotNegative(absl::StrCat(field, ".values[", i, "]"), piecewise.values(i));
  }
}

void CheckCosineRestarts(const config::v1::LearningRate::CosineRestarts& restarts, ConfigProblems* problems) {
  const std::string field = "optimizer.learning_rate.cosine_restarts";
  problems->RequirePositive(field + ".first_decay_steps", restarts.first_decay_steps());
  // With t_mul below 1, the periods shrink to nothing within finitely many steps.
  problems->Require(field + ".t_mul", restarts.t_mul(), restarts.t_mul() == 0 || restarts.t_mul() >= 1,
                    "a finite number, 1 or more");
  problems->RequireNotNegative(field + ".m_mul", restarts.m_mul());
  problems->RequireFractionOrOne(field + ".alpha", restarts.alpha());
}

void CheckSchedule(const config::v1::LearningRate& rate, ConfigProblems* problems) {
  const std::string field = "optimizer.learning_rate";
  switch (rate.schedule_case()) {
    case config::v1::LearningRate::kExponential:
      problems->RequirePositive(field + ".exponential.decay_steps", rate.exponential().decay_steps());
      return problems->RequirePositive(field + ".exponential.decay_rate", rate.exponential().decay_rate());
    case config::v1::LearningRate::kPiecewise:
      return CheckPiecewise(rate.piecewise(), problems);
    case config::v1::LearningRate::kPolynomial:
      problems->RequirePositive(field + ".polynomial.decay_steps", rate.polynomial().decay_steps());
      problems->RequireNotNegative(field + ".polynomial.end", rate.polynomial().end());
      return problems->RequireNotNegative(field + ".polynomial.power", rate.polynomial().power());
    case config::v1::LearningRate::kInverseTime:
      problems->RequirePositive(field + ".inverse_time.decay_steps", rate.inverse_time().decay_steps());
      return problems->RequireNotNegative(field + ".inverse_time.decay_rate", rate.inverse_time().decay_rate());
    case config::v1::LearningRate::kCosine:
      problems->RequirePositive(field + ".cosine.decay_steps", rate.cosine().decay_steps());
      return problems->RequireFractionOrOne(field + ".cosine.alpha", rate.cosine().alpha());
    case config::v1::LearningRate::kCosineRestarts:
      return CheckCosineRestarts(rate.cosine_restarts(), problems);
    case config::v1::LearningRate::SCHEDULE_NOT_SET:
      return;
  }
}

}  // namespace

void CheckOptimizerRule(const config::v1::OptimizerConfig& optimizer, ConfigProblems* problems) {
  if (optimizer.has_moving_average()) {
    const float decay = optimizer.moving_average().decay();
    problems->Require("optimizer.moving_average.decay", decay, decay > 0 && decay < 1, "in (0, 1), such as 0.999");
  }
  switch (optimizer.kind_case()) {
    case config::v1::OptimizerConfig::kSgd:
      return;
    case config::v1::OptimizerConfig::kMomentum:
      return problems->RequireFraction("optimizer.momentum.momentum", optimizer.momentum().momentum());
    case config::v1::OptimizerConfig::kAdam:
      return CheckAdam(optimizer.adam(), problems);
    case config::v1::OptimizerConfig::kAdagrad:
      if (!optimizer.adagrad().has_initial_accumulator()) return;
      return problems->RequirePositive("optimizer.adagrad.initial_accumulator",
                                       optimizer.adagrad().initial_accumulator());
    case config::v1::OptimizerConfig::kRmsprop:
      return CheckRmsProp(optimizer.rmsprop(), problems);
    case config::v1::OptimizerConfig::kAdadelta:
      return CheckAdadelta(optimizer.adadelta(), problems);
    case config::v1::OptimizerConfig::kFtrl:
      return CheckFtrl(optimizer.ftrl(), problems);
    case config::v1::OptimizerConfig::KIND_NOT_SET:
      break;
  }
  problems->Add("optimizer", "has no kind, must have one of sgd, momentum, adam, adagrad, rmsprop, adadelta, ftrl");
}

void CheckLearningRate(const config::v1::LearningRate& rate, ConfigProblems* problems) {
  // A piecewise schedule specifies every rate.
  if (!rate.has_piecewise()) {
    problems->Require("optimizer.learning_rate.initial", rate.initial(), rate.initial() > 0,
                      "a finite number above 0, such as 0.1");
  }
  problems->RequireNotNegative("optimizer.learning_rate.warmup_steps", rate.warmup_steps());
  CheckSchedule(rate, problems);
}

absl::Status ValidateOptimizerRule(const config::v1::OptimizerConfig& config) {
  ConfigProblems problems;
  CheckOptimizerRule(config, &problems);
  return problems.ToStatus();
}

}  // namespace lockstep

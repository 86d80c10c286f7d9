#include <cmath>

#include "absl/strings/str_cat.h"
#include "lockstep/common/config/validation/checks.h"
#include "lockstep/common/config/validation/optimizer_group.h"
#include "lockstep/common/config/validation/validation.h"

namespace lockstep {
namespace {

void CheckSgd(const config::v1::OptimizerConfig::Sgd& sgd, ConfigProblems* problems) {
  problems->RequireNotNegative("optimizer.sgd.weight_decay", sgd.weight_decay());
}

void CheckMomentum(const config::v1::OptimizerConfig::Momentum& momentum, ConfigProblems* problems) {
  problems->RequireFraction("optimizer.momentum.momentum", momentum.momentum());
  problems->RequireNotNegative("optimizer.momentum.weight_decay", momentum.weight_decay());
  problems->RequireFraction("optimizer.momentum.dampening", momentum.dampening());
  if (momentum.nesterov() && momentum.dampening() > 0) {
    problems->Add("optimizer.momentum.dampening",
                  absl::StrCat("is ", momentum.dampening(), ", but nesterov is true; use one of them"));
  }
}

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

void CheckProximalSgd(const config::v1::OptimizerConfig::ProximalSgd& sgd, ConfigProblems* problems) {
  problems->RequireNotNegative("optimizer.proximal_sgd.l1", sgd.l1());
  problems->RequireNotNegative("optimizer.proximal_sgd.l2", sgd.l2());
}

// `Adagrad` is the message of an Adagrad variant with l1 and l2; `field` is its path.
template <typename Adagrad>
void CheckRegularizedAdagrad(const std::string& field, const Adagrad& adagrad, ConfigProblems* problems) {
  if (adagrad.has_initial_accumulator()) {
    problems->RequirePositive(field + ".initial_accumulator", adagrad.initial_accumulator());
  }
  problems->RequireNotNegative(field + ".l1", adagrad.l1());
  problems->RequireNotNegative(field + ".l2", adagrad.l2());
}

void CheckNadam(const config::v1::OptimizerConfig::Nadam& nadam, ConfigProblems* problems) {
  if (nadam.has_beta1()) problems->RequireFraction("optimizer.nadam.beta1", nadam.beta1());
  if (nadam.has_beta2()) problems->RequireFraction("optimizer.nadam.beta2", nadam.beta2());
  if (nadam.has_epsilon()) problems->RequirePositive("optimizer.nadam.epsilon", nadam.epsilon());
  problems->RequireNotNegative("optimizer.nadam.weight_decay", nadam.weight_decay());
  problems->RequireNotNegative("optimizer.nadam.momentum_decay", nadam.momentum_decay());
  if (nadam.decoupled_weight_decay() && nadam.weight_decay() == 0) {
    problems->Add("optimizer.nadam.decoupled_weight_decay", "is true, but weight_decay is 0; set both or neither");
  }
}

void CheckLion(const config::v1::OptimizerConfig::Lion& lion, ConfigProblems* problems) {
  if (lion.has_beta1()) problems->RequireFraction("optimizer.lion.beta1", lion.beta1());
  if (lion.has_beta2()) problems->RequireFraction("optimizer.lion.beta2", lion.beta2());
  problems->RequireNotNegative("optimizer.lion.weight_decay", lion.weight_decay());
}

void CheckTable(const config::v1::LearningRate& rate, ConfigProblems* problems) {
  const std::string field = "optimizer.learning_rate.table";
  const config::v1::LearningRate::Table& table = rate.table();
  if (table.steps_size() != table.rates_size() || table.steps().empty()) {
    problems->Add(field, absl::StrCat("has ", table.steps_size(), " steps and ", table.rates_size(),
                                      " rates, must have as many of both, one at least"));
  }
  for (int i = 0; i < table.steps_size(); ++i) {
    const std::string step = absl::StrCat(field, ".steps[", i, "]");
    if (i == 0) {
      problems->RequireNotNegative(step, table.steps(i));
    } else {
      problems->Require(step, table.steps(i), table.steps(i) > table.steps(i - 1),
                        absl::StrCat("above the previous one, ", table.steps(i - 1)));
    }
  }
  for (int i = 0; i < table.rates_size(); ++i) {
    problems->RequireNotNegative(absl::StrCat(field, ".rates[", i, "]"), table.rates(i));
  }
  if (rate.initial() != 0) {
    problems->Add("optimizer.learning_rate.initial",
                  absl::StrCat("is ", rate.initial(), ", but table has every rate; leave it out"));
  }
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
    case config::v1::LearningRate::kTable:
      return CheckTable(rate, problems);
    case config::v1::LearningRate::kRegistered:
      return problems->RequireText(field + ".registered", rate.registered());
    case config::v1::LearningRate::SCHEDULE_NOT_SET:
      return;
  }
}

void CheckMovingAverage(const config::v1::OptimizerConfig& optimizer, ConfigProblems* problems) {
  if (!optimizer.has_moving_average()) return;
  const float decay = optimizer.moving_average().decay();
  problems->Require("optimizer.moving_average.decay", decay, decay > 0 && decay < 1, "in (0, 1), such as 0.999");
  for (int i = 0; i < optimizer.moving_average().variables_size(); ++i) {
    problems->RequireExpression(absl::StrCat("optimizer.moving_average.variables[", i, "]"),
                                optimizer.moving_average().variables(i));
  }
}

void CheckKind(const config::v1::OptimizerConfig& optimizer, ConfigProblems* problems) {
  switch (optimizer.kind_case()) {
    case config::v1::OptimizerConfig::kSgd:
      return CheckSgd(optimizer.sgd(), problems);
    case config::v1::OptimizerConfig::kMomentum:
      return CheckMomentum(optimizer.momentum(), problems);
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
    case config::v1::OptimizerConfig::kProximalSgd:
      return CheckProximalSgd(optimizer.proximal_sgd(), problems);
    case config::v1::OptimizerConfig::kProximalAdagrad:
      return CheckRegularizedAdagrad("optimizer.proximal_adagrad", optimizer.proximal_adagrad(), problems);
    case config::v1::OptimizerConfig::kAdagradDa:
      return CheckRegularizedAdagrad("optimizer.adagrad_da", optimizer.adagrad_da(), problems);
    case config::v1::OptimizerConfig::kNadam:
      return CheckNadam(optimizer.nadam(), problems);
    case config::v1::OptimizerConfig::kLion:
      return CheckLion(optimizer.lion(), problems);
    case config::v1::OptimizerConfig::KIND_NOT_SET:
      break;
  }
  problems->Add("optimizer",
                "has no kind, must have one of sgd, momentum, adam, adagrad, rmsprop, adadelta, ftrl, proximal_sgd, "
                "proximal_adagrad, adagrad_da, nadam, lion");
}

// Checks the optimizer of a group. Its paths begin with "optimizer", like those of the whole optimizer.
void CheckOwnOptimizer(const config::v1::OptimizerConfig& own, ConfigProblems* problems) {
  CheckMovingAverage(own, problems);
  if (own.moving_average().variables_size() > 0) {
    problems->Add("optimizer.moving_average.variables",
                  "is set in a group, whose own averages are of all its variables; set it in optimizer.moving_average");
  }
  if (HasKind(own)) CheckKind(own, problems);
  if (own.has_learning_rate()) CheckLearningRate(own.learning_rate(), problems);
  if (own.multipliers_size() > 0) {
    problems->Add("optimizer.multipliers",
                  "is set in a group; set it in optimizer.multipliers, with the same variables");
  }
  if (own.group_size() > 0) problems->Add("optimizer.group", "is set in a group; groups have no groups");
  if (own.clip().by_value() != 0 || own.clip().by_norm() != 0 || own.clip().by_global_norm() != 0) {
    problems->Add("optimizer.clip",
                  "has by_value, by_norm or by_global_norm in a group, which workers apply to all variables; set it in "
                  "optimizer.clip, or use mean_by_global_norm");
  }
  problems->RequireNotNegative("optimizer.clip.mean_by_global_norm", own.clip().mean_by_global_norm());
}

void CheckGroup(const std::string& field, const config::v1::OptimizerConfig& whole,
                const config::v1::OptimizerConfig::Group& group, ConfigProblems* problems) {
  problems->RequireExpression(field + ".variables", group.variables());
  if (!group.has_rate_factor() && !group.has_weight_decay() && !group.has_moving_average() && !group.has_optimizer()) {
    problems->Add(field, "changes nothing; give it a rate_factor, weight_decay, moving_average or optimizer");
  }
  problems->RequireNotNegative(field + ".rate_factor", group.rate_factor());
  problems->RequireNotNegative(field + ".weight_decay", group.weight_decay());
  const bool has_rule = HasKind(group.optimizer());
  if (group.has_weight_decay() && has_rule) {
    problems->Add(field + ".weight_decay", "is set, and so is a rule in the group's optimizer; set it in the rule");
  } else if (group.has_weight_decay() && !HasWeightDecay(whole)) {
    problems->Add(field + ".weight_decay", "is set, but the optimizer's rule has no weight_decay");
  }
  if (group.has_moving_average() && group.optimizer().has_moving_average()) {
    problems->Add(field + ".moving_average",
                  "is set, and so is moving_average in the group's optimizer; leave one out");
  } else if (group.has_moving_average() && !whole.has_moving_average()) {
    problems->Add(field + ".moving_average", "is set, but optimizer.moving_average is not; leave it out");
  }
  ConfigProblems own(field + ".");
  CheckOwnOptimizer(group.optimizer(), &own);
  problems->AddAll(own);
}

}  // namespace

void CheckOptimizerRule(const config::v1::OptimizerConfig& optimizer, ConfigProblems* problems) {
  CheckMovingAverage(optimizer, problems);
  CheckKind(optimizer, problems);
  for (int i = 0; i < optimizer.group_size(); ++i) {
    CheckGroup(absl::StrCat("optimizer.group[", i, "]"), optimizer, optimizer.group(i), problems);
  }
}

void CheckLearningRate(const config::v1::LearningRate& rate, ConfigProblems* problems) {
  // A piecewise schedule and a table specify every rate, so they need no initial one.
  if (!rate.has_piecewise() && !rate.has_table()) {
    problems->Require("optimizer.learning_rate.initial", rate.initial(), rate.initial() > 0,
                      "a finite number above 0, such as 0.1");
  }
  problems->RequireNotNegative("optimizer.learning_rate.warmup_steps", rate.warmup_steps());
  CheckSchedule(rate, problems);
}

absl::Status ValidateLearningRate(const config::v1::LearningRate& rate) {
  ConfigProblems problems;
  CheckLearningRate(rate, &problems);
  return problems.ToStatus();
}

absl::Status ValidateOptimizerRule(const config::v1::OptimizerConfig& config) {
  ConfigProblems problems;
  CheckOptimizerRule(config, &problems);
  return problems.ToStatus();
}

}  // namespace lockstep

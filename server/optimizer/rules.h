#ifndef LOCKSTEP_SERVER_OPTIMIZER_RULES_H_
#define LOCKSTEP_SERVER_OPTIMIZER_RULES_H_

#include <memory>

#include "proto/optimizer.pb.h"
#include "server/optimizer/optimizer.h"

namespace lockstep {

// What Optimizer::Create chooses from. Each file holds one rule, its formula and where that comes from.
std::unique_ptr<Optimizer> CreateSgd(const OptimizerConfig::Sgd& config);
std::unique_ptr<Optimizer> CreateMomentum(const OptimizerConfig::Momentum& config);
std::unique_ptr<Optimizer> CreateAdam(const OptimizerConfig::Adam& config);
std::unique_ptr<Optimizer> CreateAdagrad(const OptimizerConfig::Adagrad& config);
std::unique_ptr<Optimizer> CreateRmsProp(const OptimizerConfig::RmsProp& config);
std::unique_ptr<Optimizer> CreateAdadelta(const OptimizerConfig::Adadelta& config);
std::unique_ptr<Optimizer> CreateFtrl(const OptimizerConfig::Ftrl& config);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_RULES_H_

#ifndef LOCKSTEP_SERVER_OPTIMIZER_RULES_H_
#define LOCKSTEP_SERVER_OPTIMIZER_RULES_H_

#include <memory>

#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/server/optimizer/optimizer.h"

namespace lockstep {

// Factory functions for Optimizer::Create. Each rule has a file of its own, which documents its formula and source.
// Configurations must be complete.
std::unique_ptr<Optimizer> CreateSgd(const config::v1::OptimizerConfig::Sgd& config);
std::unique_ptr<Optimizer> CreateMomentum(const config::v1::OptimizerConfig::Momentum& config);
std::unique_ptr<Optimizer> CreateAdam(const config::v1::OptimizerConfig::Adam& config);
std::unique_ptr<Optimizer> CreateAdagrad(const config::v1::OptimizerConfig::Adagrad& config);
std::unique_ptr<Optimizer> CreateRmsProp(const config::v1::OptimizerConfig::RmsProp& config);
std::unique_ptr<Optimizer> CreateAdadelta(const config::v1::OptimizerConfig::Adadelta& config);
std::unique_ptr<Optimizer> CreateFtrl(const config::v1::OptimizerConfig::Ftrl& config);
std::unique_ptr<Optimizer> CreateProximalSgd(const config::v1::OptimizerConfig::ProximalSgd& config);
std::unique_ptr<Optimizer> CreateProximalAdagrad(const config::v1::OptimizerConfig::ProximalAdagrad& config);
std::unique_ptr<Optimizer> CreateAdagradDa(const config::v1::OptimizerConfig::AdagradDa& config);
std::unique_ptr<Optimizer> CreateNadam(const config::v1::OptimizerConfig::Nadam& config);
std::unique_ptr<Optimizer> CreateLion(const config::v1::OptimizerConfig::Lion& config);
// Wraps `rule` and keeps moving averages of the values that it computes.
std::unique_ptr<Optimizer> CreateMovingAverage(const config::v1::OptimizerConfig::MovingAverage& config,
                                               std::unique_ptr<Optimizer> rule);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_RULES_H_

#include "lockstep/common/config/validation/optimizer_group.h"

namespace lockstep {
namespace {

using config::v1::OptimizerConfig;

// Sets the rule's weight_decay to *value, unless `value` is null. Returns false if the rule has no weight_decay.
bool VisitWeightDecay(OptimizerConfig* optimizer, const float* value) {
  const auto visit = [value](auto* rule) {
    if (value != nullptr) rule->set_weight_decay(*value);
    return true;
  };
  switch (optimizer->kind_case()) {
    case OptimizerConfig::kSgd:
      return visit(optimizer->mutable_sgd());
    case OptimizerConfig::kMomentum:
      return visit(optimizer->mutable_momentum());
    case OptimizerConfig::kAdam:
      return visit(optimizer->mutable_adam());
    case OptimizerConfig::kNadam:
      return visit(optimizer->mutable_nadam());
    case OptimizerConfig::kLion:
      return visit(optimizer->mutable_lion());
    default:
      return false;
  }
}

}  // namespace

bool HasKind(const OptimizerConfig& optimizer) { return optimizer.kind_case() != OptimizerConfig::KIND_NOT_SET; }

bool HasWeightDecay(const OptimizerConfig& optimizer) {
  OptimizerConfig copy = optimizer;
  return VisitWeightDecay(&copy, nullptr);
}

OptimizerConfig OptimizerOfGroup(const OptimizerConfig& whole, const OptimizerConfig::Group& group) {
  OptimizerConfig result = whole;
  result.clear_multipliers();
  result.clear_clip();
  result.clear_group();
  if (HasKind(group.optimizer())) result.clear_kind();
  if (group.optimizer().has_learning_rate()) result.clear_learning_rate();
  if (group.optimizer().has_moving_average()) result.clear_moving_average();
  result.MergeFrom(group.optimizer());
  if (group.has_moving_average() && !group.moving_average()) result.clear_moving_average();
  const float weight_decay = group.weight_decay();
  if (group.has_weight_decay()) VisitWeightDecay(&result, &weight_decay);
  if (weight_decay == 0 && result.has_nadam() && result.nadam().weight_decay() == 0) {
    result.mutable_nadam()->clear_decoupled_weight_decay();  // not allowed without a decay
  }
  return result;
}

}  // namespace lockstep

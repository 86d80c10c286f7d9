#include "lockstep/server/sync/policy/policy_factory.h"

#include "absl/time/time.h"
#include "lockstep/server/sync/policy/deterministic.h"

namespace lockstep {

std::unique_ptr<StepPolicy> NewStepPolicy(const config::v1::RunSpec& config, const ParameterLayout& layout,
                                          int64_t step) {
  DeterministicPolicy::Options options;
  options.queue.slots = config.training().replicas_to_aggregate();
  options.queue.lease = absl::Seconds(config.cluster().lease_seconds());
  if (config.has_audit()) {
    options.audit.enabled = true;
    options.audit.fraction = config.audit().fraction();
    options.audit.fails = config.audit().on_mismatch() == config::v1::AuditConfig::FAIL;
    options.audit.seed = config.training().seed();
    for (const ParameterLayout::Variable& variable : layout.variables()) {
      if (variable.spec.trainable()) options.audit.variables.push_back(variable.spec.name());
    }
  }
  return std::make_unique<DeterministicPolicy>(options, step);
}

}  // namespace lockstep

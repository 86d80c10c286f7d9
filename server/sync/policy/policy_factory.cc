#include "lockstep/server/sync/policy/policy_factory.h"

#include <utility>

#include "absl/time/time.h"
#include "lockstep/server/sync/policy/async.h"
#include "lockstep/server/sync/policy/deterministic.h"
#include "lockstep/server/sync/policy/first_arrivals.h"

namespace lockstep {
namespace {

using ::lockstep::config::v1::TrainingConfig;

std::unique_ptr<StepPolicy> NewDeterministic(const config::v1::RunSpec& config, const ParameterLayout& layout,
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

}  // namespace

std::unique_ptr<StepPolicy> NewStepPolicy(const config::v1::RunSpec& config, const ParameterLayout& layout,
                                          int64_t step, std::vector<int64_t> stream_positions) {
  switch (config.training().policy_case()) {
    case TrainingConfig::kFirstArrivals: {
      const TrainingConfig::FirstArrivals& policy = config.training().first_arrivals();
      FirstArrivalsPolicy::Options options;
      options.replicas_to_aggregate = config.training().replicas_to_aggregate();
      options.total_replicas = policy.total_replicas();
      options.initial_tokens = policy.initial_tokens();
      options.lease = absl::Seconds(config.cluster().lease_seconds());
      return std::make_unique<FirstArrivalsPolicy>(options, step, std::move(stream_positions));
    }
    case TrainingConfig::kAsync: {
      AsyncPolicy::Options options;
      if (config.training().async().has_max_staleness()) {
        options.max_staleness = config.training().async().max_staleness();
      }
      return std::make_unique<AsyncPolicy>(options, step, std::move(stream_positions));
    }
    case TrainingConfig::kDeterministic:
    case TrainingConfig::POLICY_NOT_SET:
      break;
  }
  return NewDeterministic(config, layout, step);
}

}  // namespace lockstep

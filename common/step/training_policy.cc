#include "lockstep/common/step/training_policy.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/step/partial_sums.h"

namespace lockstep {

using ::lockstep::config::v1::TrainingConfig;

std::string PolicyName(const TrainingConfig& training) {
  switch (training.policy_case()) {
    case TrainingConfig::kFirstArrivals:
      return "FIRST_ARRIVALS";
    case TrainingConfig::kAsync:
      return "ASYNC";
    case TrainingConfig::kDeterministic:
    case TrainingConfig::POLICY_NOT_SET:
      break;
  }
  return "DETERMINISTIC";
}

std::string PolicyText(const TrainingConfig& training) {
  const std::string name = absl::StrCat("policy ", PolicyName(training), ": ");
  switch (training.policy_case()) {
    case TrainingConfig::kFirstArrivals:
      return absl::StrCat(name, "the first ", training.replicas_to_aggregate(),
                          " contributions of a step count, and later ones are dropped; the weights depend on the order "
                          "of arrival, and are not reproducible");
    case TrainingConfig::kAsync:
      return absl::StrCat(name,
                          "each contribution is applied when it arrives, once, whatever fails; the weights depend on "
                          "the order of arrival, and are not reproducible");
    case TrainingConfig::kDeterministic:
    case TrainingConfig::POLICY_NOT_SET:
      break;
  }
  return absl::StrCat(name, "the weights depend on the configuration, the data and the seed alone");
}

bool ReadsStreams(const TrainingConfig& training) { return training.has_first_arrivals() || training.has_async(); }

int64_t BatchesTogether(const TrainingConfig& training) {
  return ReadsStreams(training) ? 1 : training.replicas_to_aggregate();
}

int64_t StagedContributions(const config::v1::RunSpec& config, uint64_t bytes) {
  if (!ReadsStreams(config.training())) return 0;
  const int64_t given = config.cluster().max_staged_contributions();
  return given > 0 ? given : DefaultStagedContributions(bytes);
}

}  // namespace lockstep

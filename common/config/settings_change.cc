#include "lockstep/common/config/settings_change.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/common/step/training_policy.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;

// Maximum number of examples in one step, small enough that the positions of many steps fit in 64 bits.
constexpr int64_t kMaxGlobalBatch = int64_t{1} << 40;

// Returns only the settings that affect gradients: the multipliers and the clips.
config::v1::OptimizerConfig GradientSettings(const config::v1::RunSpec& spec) {
  config::v1::OptimizerConfig settings;
  *settings.mutable_multipliers() = spec.optimizer().multipliers();
  if (spec.optimizer().has_clip()) *settings.mutable_clip() = spec.optimizer().clip();
  return settings;
}

config::v1::LearningRate ConstantRate(float value) {
  config::v1::LearningRate rate;
  // An initial rate of 0 would count as absent.
  value == 0 ? rate.mutable_piecewise()->add_values(0) : rate.set_initial(value);
  return rate;
}

}  // namespace

bool ChangesGradients(const config::v1::RunSpec& before, const config::v1::RunSpec& after) {
  return before.input().batch_size() != after.input().batch_size() ||
         !MessageDifferencer::Equals(GradientSettings(before), GradientSettings(after));
}

absl::Status CheckBatchSize(const config::v1::InputConfig& input, int64_t replicas, int64_t examples) {
  const int64_t batch_size = input.batch_size();
  if (batch_size <= 0 || batch_size > kMaxGlobalBatch / replicas) {
    return absl::InvalidArgumentError(absl::StrCat("input.batch_size is ", batch_size,
                                                   " and training.replicas_to_aggregate is ", replicas,
                                                   "; a step must have 1 to ", kMaxGlobalBatch, " examples"));
  }
  if (input.last_batch() == config::v1::InputConfig::DROP && examples < replicas * batch_size) {
    return absl::InvalidArgumentError(absl::StrCat("input.batch_size is ", batch_size, ": the split has ", examples,
                                                   " examples, one step needs ", replicas * batch_size,
                                                   ", and input.last_batch is DROP"));
  }
  return absl::OkStatus();
}

absl::StatusOr<config::v1::RunSpec> WithSettings(config::v1::RunSpec spec, const SettingsChange& change,
                                                 absl::optional<int64_t> examples) {
  if (change.optimizer) *spec.mutable_optimizer() = *change.optimizer;
  if (change.learning_rate) *spec.mutable_optimizer()->mutable_learning_rate() = ConstantRate(*change.learning_rate);
  if (!change.optimizer && !change.batch_size) {
    // A program may set the rate at every step, so validate only the rate. No other setting depends on it.
    RETURN_IF_ERROR(ValidateLearningRate(spec.optimizer().learning_rate()));
    return spec;
  }
  if (change.batch_size) {
    if (!spec.has_input()) {
      return absl::InvalidArgumentError(absl::StrCat("input.batch_size is ", *change.batch_size,
                                                     ", must be absent: the run's configuration has no input"));
    }
    spec.mutable_input()->set_batch_size(*change.batch_size);
  }
  ApplyDefaults(&spec);
  RETURN_IF_ERROR(ValidateRunSpec(spec));
  if (change.batch_size) {
    RETURN_IF_ERROR(CheckBatchSize(spec.input(), BatchesTogether(spec.training()),
                                   examples.value_or(std::numeric_limits<int64_t>::max())));
  }
  return spec;
}

}  // namespace lockstep

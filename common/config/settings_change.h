#ifndef LOCKSTEP_COMMON_CONFIG_SETTINGS_CHANGE_H_
#define LOCKSTEP_COMMON_CONFIG_SETTINGS_CHANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/config/v1/input.pb.h"
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// A change of a run's settings between two steps. Absent settings stay the same. A value type.
struct SettingsChange {
  // The complete new optimizer configuration: learning rate, settings of the same kind of optimizer, multipliers and
  // clips.
  absl::optional<config::v1::OptimizerConfig> optimizer;
  // A constant rate, 0 or more, that replaces the optimizer's schedule and warm-up.
  absl::optional<float> learning_rate;
  // The new input.batch_size, the number of examples in each slot of a step.
  absl::optional<int64_t> batch_size;
};

// Applies the change to `spec`, a complete configuration. `examples` is the size of the training split, if known.
// Errors: InvalidArgument names each wrong setting. Does not check whether the optimizer's state stays the same.
absl::StatusOr<config::v1::RunSpec> WithSettings(config::v1::RunSpec spec, const SettingsChange& change,
                                                 absl::optional<int64_t> examples);

// Returns true if workers compute something different with `after` than with `before`, because input.batch_size,
// multipliers or clips differ. Only the chief uses the other settings that may change.
bool ChangesGradients(const config::v1::RunSpec& before, const config::v1::RunSpec& after);

// Checks that a split of `examples` examples has enough for a batch of input.batch_size in each of `replicas` slots.
// `replicas` must be at least 1. Errors: InvalidArgument names input.batch_size.
absl::Status CheckBatchSize(const config::v1::InputConfig& input, int64_t replicas, int64_t examples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_SETTINGS_CHANGE_H_

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

// Settings of a run that may change between two steps. Absent ones stay the same. A value type.
struct SettingsChange {
  // All of the learning rate, the optimizer's settings (of the same kind), multipliers and clips.
  absl::optional<config::v1::OptimizerConfig> optimizer;
  // A constant rate, 0 or more, in place of the optimizer's schedule and warm-up.
  absl::optional<float> learning_rate;
  // input.batch_size: examples per (step, slot).
  absl::optional<int64_t> batch_size;
};

// Applies the change to `spec`, a complete configuration. `examples` is the size of the training split, if known.
// Errors: InvalidArgument names each wrong setting. Does not check whether the optimizer's state stays the same.
absl::StatusOr<config::v1::RunSpec> WithSettings(config::v1::RunSpec spec, const SettingsChange& change,
                                                 absl::optional<int64_t> examples);

// Returns whether workers compute something else with `after` than with `before`: input.batch_size, multipliers or
// clips differ. The chief alone uses the other settings that may change.
bool ChangesGradients(const config::v1::RunSpec& before, const config::v1::RunSpec& after);

// Checks that a split of `examples` has enough for batches of input.batch_size in each of `replicas` slots, at least 1.
// Errors: InvalidArgument names input.batch_size.
absl::Status CheckBatchSize(const config::v1::InputConfig& input, int64_t replicas, int64_t examples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_SETTINGS_CHANGE_H_

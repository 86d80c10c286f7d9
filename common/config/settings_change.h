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

// Settings of a run that may change between two steps. What is absent stays as it is. A value.
struct SettingsChange {
  // Learning rate, settings of the same kind of optimizer, multipliers and clips: all of them.
  absl::optional<config::v1::OptimizerConfig> optimizer;
  // input.batch_size: examples of each (step, slot).
  absl::optional<int64_t> batch_size;
};

// `spec`, a whole configuration, with the change. `examples` of the split that training reads, if that is known.
// Errors: InvalidArgument names each setting that is wrong. Whether the optimizer keeps its state is not checked.
absl::StatusOr<config::v1::RunSpec> WithSettings(config::v1::RunSpec spec, const SettingsChange& change,
                                                 absl::optional<int64_t> examples);

// Whether a split of `examples` has batches of input.batch_size for `replicas` slots, at least 1. Errors:
// InvalidArgument names input.batch_size.
absl::Status CheckBatchSize(const config::v1::InputConfig& input, int64_t replicas, int64_t examples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CONFIG_SETTINGS_CHANGE_H_

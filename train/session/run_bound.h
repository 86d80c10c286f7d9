#ifndef LOCKSTEP_TRAIN_SESSION_RUN_BOUND_H_
#define LOCKSTEP_TRAIN_SESSION_RUN_BOUND_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train {

// Returns the global step at which a chief with these options would end the run in its logdir, or nullopt if the run is
// unbounded. Errors: those of reading the run's record and its checkpoints.
absl::StatusOr<absl::optional<int64_t>> RunBound(const SessionOptions& chief);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_RUN_BOUND_H_

#ifndef LOCKSTEP_WORKER_SESSION_WORKER_WAITS_H_
#define LOCKSTEP_WORKER_SESSION_WORKER_WAITS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace lockstep {

// The options of a worker's waits, which its program chooses. WorkerSession::Options and train::SessionOptions derive
// from this struct, so that it is passed on as a whole.
struct WorkerWaits {
  // Maximum time that the worker searches for a missing chief. If nullopt, the configured time, or 600 s before the
  // configuration is known.
  absl::optional<absl::Duration> max_wait;
  // The global step before which the worker gets no token. If nullopt, the configured step.
  absl::optional<int64_t> startup_delay_steps;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_WORKER_WAITS_H_

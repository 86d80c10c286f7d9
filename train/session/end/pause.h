#ifndef LOCKSTEP_TRAIN_SESSION_END_PAUSE_H_
#define LOCKSTEP_TRAIN_SESSION_END_PAUSE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep::train {

// Blocks until `duration` has passed on `clock` and returns OK, or until the process is stopped and returns Cancelled.
// `stop` may be null.
absl::Status Pause(absl::Duration duration, Clock* clock, StopSignal* stop);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_END_PAUSE_H_

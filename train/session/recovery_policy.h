#ifndef LOCKSTEP_TRAIN_SESSION_RECOVERY_POLICY_H_
#define LOCKSTEP_TRAIN_SESSION_RECOVERY_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/backoff.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep::train {

struct RecoveryOptions {
  // So many sessions, one after the other, may bring nothing; at least 0.
  int max_attempts = 10;
  absl::Duration initial_wait = absl::Milliseconds(100);
  absl::Duration max_wait = absl::Seconds(10);
  // Of the random part by which each wait is shorter.
  uint64_t seed = 0;
};

// Decides whether a session that was lost is followed by another. Not thread-safe.
class RecoveryPolicy {
 public:
  explicit RecoveryPolicy(const RecoveryOptions& options);

  // Errors that another session may survive: Aborted and Unavailable.
  static bool Survives(const absl::Status& status);

  // A run has succeeded.
  void OnProgress();
  // A session was lost, or could not be made. Returns how long to wait before the next, or the error with which to give
  // up: `status` itself if nothing survives it, else one of its code that says how often it was tried.
  absl::StatusOr<absl::Duration> OnFailure(const absl::Status& status);
  // Calls OnFailure, logs that another session follows, and waits. Returns OK when it is to be opened; otherwise the
  // error of OnFailure or, when the process is to stop, `saved` (of Session::Stop), or Cancelled if that is OK.
  absl::Status AwaitNext(const absl::Status& status, const absl::Status& saved, Clock* clock, StopSignal* stop);

 private:
  const RecoveryOptions options_;
  Backoff backoff_;
  int attempts_ = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_RECOVERY_POLICY_H_

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
  // Maximum number of consecutive sessions that may end without a step. At least 0.
  int max_attempts = 10;
  absl::Duration initial_wait = absl::Milliseconds(100);
  absl::Duration max_wait = absl::Seconds(10);
  // The seed for the random amount by which each wait is shortened.
  uint64_t seed = 0;
};

// Decides whether to open another session after one was lost. Not thread-safe.
class RecoveryPolicy {
 public:
  explicit RecoveryPolicy(const RecoveryOptions& options);

  // Returns true for errors after which another session may succeed: Aborted and Unavailable.
  static bool Survives(const absl::Status& status);

  // Resets the number of attempts. Called after a successful Run.
  void OnProgress();
  // Called when a session was lost or could not be opened. Returns how long to wait before the next one, or the error
  // to give up with: `status` itself if another session cannot help, otherwise an error with the same code and the
  // number of attempts.
  absl::StatusOr<absl::Duration> OnFailure(const absl::Status& status);
  // Calls OnFailure, logs that another session follows, and waits. Returns OK if the caller should open that session.
  // Otherwise returns the error from OnFailure or, if the process is stopping, `saved` (the result of Session::Stop),
  // or Cancelled if `saved` is OK.
  absl::Status AwaitNext(const absl::Status& status, const absl::Status& saved, Clock* clock, StopSignal* stop);

 private:
  const RecoveryOptions options_;
  Backoff backoff_;
  int attempts_ = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_RECOVERY_POLICY_H_

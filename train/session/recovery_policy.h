#ifndef LOCKSTEP_TRAIN_SESSION_RECOVERY_POLICY_H_
#define LOCKSTEP_TRAIN_SESSION_RECOVERY_POLICY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/backoff.h"

namespace lockstep::train {

struct RecoveryOptions {
  // So many sessions, one after the other, may bring nothing; at least 0.
  int max_attempts = 10;
  absl::Duration initial_wait = absl::Milliseconds(100);
  absl::Duration max_wait = absl::Seconds(10);
  // Of the random part by which each wait is shorter.
  uint64_t seed = 0;
};

// Decides whether a session that was lost is followed by another. It does not wait itself. Not thread-safe.
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

 private:
  const RecoveryOptions options_;
  Backoff backoff_;
  int attempts_ = 0;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_RECOVERY_POLICY_H_

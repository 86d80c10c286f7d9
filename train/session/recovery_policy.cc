#include "lockstep/train/session/recovery_policy.h"

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/session/end/pause.h"

namespace lockstep::train {
namespace {

Backoff::Options BackoffOptions(const RecoveryOptions& options) {
  Backoff::Options backoff;
  backoff.initial = options.initial_wait;
  backoff.max = options.max_wait;
  return backoff;
}

}  // namespace

RecoveryPolicy::RecoveryPolicy(const RecoveryOptions& options)
    : options_(options), backoff_(BackoffOptions(options), options.seed) {}

bool RecoveryPolicy::Survives(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

void RecoveryPolicy::OnProgress() {
  attempts_ = 0;
  backoff_.Reset();
}

absl::StatusOr<absl::Duration> RecoveryPolicy::OnFailure(const absl::Status& status) {
  if (!Survives(status)) return status;
  if (++attempts_ > options_.max_attempts) {
    return absl::Status(status.code(), absl::StrCat("given up after ", options_.max_attempts,
                                                    " further sessions without a step: ", status.message()));
  }
  return backoff_.Next();
}

absl::Status RecoveryPolicy::AwaitNext(const absl::Status& status, const absl::Status& saved, Clock* clock,
                                       StopSignal* stop) {
  ASSIGN_OR_RETURN(const absl::Duration wait, OnFailure(status));
  LOG(WARNING) << "opening another session in " << absl::FormatDuration(wait) << ": " << status.message();
  const absl::Status paused = Pause(wait, clock, stop);
  // If the process is stopping, the caller must learn whether the last step was saved.
  return paused.ok() || saved.ok() ? paused : saved;
}

}  // namespace lockstep::train

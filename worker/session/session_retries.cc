#include "lockstep/worker/session/session_retries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/cluster/end_of_run.h"

namespace lockstep {
namespace {

Backoff::Options BackoffOptions() {
  Backoff::Options options;
  options.initial = absl::Milliseconds(50);
  options.max = absl::Seconds(1);
  return options;
}

// gRPC returns these codes if a connection is reset during a call ("Stream removed", "RST_STREAM"). A chief never sends
// them to a worker of the same version.
bool IsTransportsWord(const absl::Status& status) { return absl::IsUnknown(status) || absl::IsInternal(status); }

}  // namespace

SessionRetries::SessionRetries(std::string chief, absl::Time now, uint64_t seed)
    : chief_(std::move(chief)), backoff_(BackoffOptions(), seed), absent_since_(now) {}

bool SessionRetries::Survives(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:       // the chief is gone or not ready yet
    case absl::StatusCode::kAborted:           // it has restarted or no longer knows the session
    case absl::StatusCode::kDeadlineExceeded:  // it does not answer
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return IsTransportsWord(status);
  }
}

void SessionRetries::OnProgress() {
  fruitless_since_.reset();
  backoff_.Reset();
  at_once_left_ = kAtOnce;
}

absl::StatusOr<absl::Duration> SessionRetries::OnFailure(const absl::Status& status, absl::Time now,
                                                         absl::Duration limit) {
  if (IsEndOfRun(status)) return OnEndOfRun(status, now, limit);
  over_since_.reset();
  if (!Survives(status)) return status;
  const bool answered = std::exchange(answered_, false);
  // If every step ends the session of a worker that is waiting for a token, the worker cannot make progress, but the
  // chief is alive. Aborted therefore does not count as fruitless.
  const bool fruitless = (std::exchange(open_, false) && !absl::IsAborted(status)) || IsTransportsWord(status);
  if (answered) absent_since_ = now;
  absence_ = now - absent_since_;
  if (!fruitless) {
    fruitless_since_.reset();
  } else if (!fruitless_since_) {
    fruitless_since_ = now;
  }
  if (absence_ >= limit) {
    return absl::UnavailableError(absl::StrCat("the chief at ", chief_, " has been unreachable for ",
                                               absl::FormatDuration(limit), ": ", status.message()));
  }
  if (fruitless_since_ && now - *fruitless_since_ >= limit) {
    return absl::UnavailableError(absl::StrCat("no session with the chief at ", chief_, " has brought anything for ",
                                               absl::FormatDuration(limit), ": ", status.message()));
  }
  if (answered && absl::IsAborted(status) && at_once_left_ > 0) {
    --at_once_left_;
    return absl::ZeroDuration();
  }
  return backoff_.Next();
}

absl::StatusOr<absl::Duration> SessionRetries::OnEndOfRun(const absl::Status& status, absl::Time now,
                                                          absl::Duration limit) {
  if (!over_since_) over_since_ = now;
  if (had_session_ || now - *over_since_ >= std::min<absl::Duration>(kEndGrace, limit)) return status;
  return backoff_.Next();
}

}  // namespace lockstep

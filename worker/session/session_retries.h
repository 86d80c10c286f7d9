#ifndef LOCKSTEP_WORKER_SESSION_SESSION_RETRIES_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_RETRIES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/backoff.h"

namespace lockstep {

// The rules by which a worker whose session has ended opens another one or gives up. It gives up if the chief does not
// answer for the maximum waiting time, if sessions fail without progress for that time, or if the address file says
// that the run is over (IsEndOfRun). A worker that never had a session believes the file only if it still says so after
// kEndGrace, because a chief that continues the run may be starting at the same time. A worker never gives up on a
// chief that rejects its session with Aborted (the worker held old values for too long, or the chief was restarted),
// since that chief is alive. The worker then requests another session immediately, up to kAtOnce times until one makes
// progress. Pure: no lock, no clock, no I/O.
class SessionRetries {
 public:
  static constexpr absl::Duration kEndGrace = absl::Seconds(3);
  static constexpr int kAtOnce = 8;

  // Starts looking for the chief at address `chief` at time `now`.
  SessionRetries(std::string chief, absl::Time now, uint64_t seed);

  // Returns true if another session may follow one that ended with this status. Only this function decides which errors
  // from the chief and its stream a worker survives.
  static bool Survives(const absl::Status& status);

  // Record, respectively, that the chief has answered a call, that a session is open, and that the session makes
  // progress: the chief has accepted a block, or the worker is waiting for a token and the chief knows the worker.
  void OnAnswer() { answered_ = true; }
  void OnOpen() { had_session_ = open_ = true; }
  void OnProgress();

  // Records that a session, or the attempt to open one, ended with `status`. Returns how long to wait before the next
  // attempt. If the worker has to give up, returns the error to report: `status` if the worker cannot survive it or the
  // run is over, or Unavailable after `limit` without success.
  absl::StatusOr<absl::Duration> OnFailure(const absl::Status& status, absl::Time now, absl::Duration limit);

  // Returns how long the chief had been silent at the last failure.
  absl::Duration absence() const { return absence_; }

 private:
  absl::StatusOr<absl::Duration> OnEndOfRun(const absl::Status& status, absl::Time now, absl::Duration limit);

  const std::string chief_;
  Backoff backoff_;
  // State of the current attempt.
  bool answered_ = false;
  bool open_ = false;
  // Number of sessions that may still be opened without delay before one has to make progress.
  int at_once_left_ = kAtOnce;
  // Time of the first failure since the chief last answered.
  absl::Time absent_since_;
  absl::Duration absence_;
  // The time of the first of the consecutive sessions that were opened and failed without progress.
  absl::optional<absl::Time> fruitless_since_;
  bool had_session_ = false;
  // The time of the first of the consecutive attempts that found the run to be over.
  absl::optional<absl::Time> over_since_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_RETRIES_H_

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

// Decides when a worker whose session has ended opens another one, and when it gives up: when there is no answer, or
// sessions fail without progress, for as long as it may wait for a chief, or when the address file says that the run is
// over (IsEndOfRun). A worker that never had a session believes the file only if it still says so after kEndGrace,
// because a chief that continues the run may be starting at the same time. A chief that sends the worker away (Aborted:
// the worker held old values for too long, or the chief was restarted) knows it and is never given up. The worker
// requests another session immediately, up to kAtOnce times before one makes progress. Pure: no lock, no clock, no I/O.
class SessionRetries {
 public:
  static constexpr absl::Duration kEndGrace = absl::Seconds(3);
  static constexpr int kAtOnce = 8;

  // Begins to look for the chief at address `chief` at `now`.
  SessionRetries(std::string chief, absl::Time now, uint64_t seed);

  // Returns true if another session may follow one that ended with this status. Only this function decides which errors
  // of the chief and its stream a worker survives.
  static bool Survives(const absl::Status& status);

  // Note that the chief answered a call, that a session is open, and that it makes progress: a block was taken, or the
  // worker waits for a token and is known to the chief.
  void OnAnswer() { answered_ = true; }
  void OnOpen() { had_session_ = open_ = true; }
  void OnProgress();

  // A session, or the attempt to open one, ended with `status`. Returns how long to wait before the next attempt, or
  // the error with which to give up: `status` if nothing survives it or it is the end of the run, Unavailable after
  // `limit` without success.
  absl::StatusOr<absl::Duration> OnFailure(const absl::Status& status, absl::Time now, absl::Duration limit);

  // Returns how long the chief had not answered at the last failure.
  absl::Duration absence() const { return absence_; }

 private:
  absl::StatusOr<absl::Duration> OnEndOfRun(const absl::Status& status, absl::Time now, absl::Duration limit);

  const std::string chief_;
  Backoff backoff_;
  // State of the present attempt.
  bool answered_ = false;
  bool open_ = false;
  // Number of sessions that may be opened without a delay until one makes progress.
  int at_once_left_ = kAtOnce;
  // The time of the first failure since the chief answered.
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

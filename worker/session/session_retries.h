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
// sessions fail and bring nothing, for as long as it may wait for a chief, or when the address file says that the run
// is over (IsEndOfRun). A worker that never had a session believes that only when it is still said after kEndGrace: a
// chief that is to continue the run may be starting at the same time. A chief that sends the worker away (Aborted:
// the worker held old values for too long, or the chief was restarted) knows it and is never given up. It is asked for
// another session at once, up to kAtOnce times before one brings something. Pure: no lock, no clock, no I/O.
class SessionRetries {
 public:
  static constexpr absl::Duration kEndGrace = absl::Seconds(3);
  static constexpr int kAtOnce = 8;

  // The chief at address `chief` is looked for since `now`.
  SessionRetries(std::string chief, absl::Time now, uint64_t seed);

  // Returns true if another session may follow one that ended with this status. Only this function decides which errors
  // of the chief and its stream a worker survives.
  static bool Survives(const absl::Status& status);

  // The chief answered a call; a session is open; the session brings something: a block was taken, or the worker waits
  // for a token and is known to the chief.
  void OnAnswer() { answered_ = true; }
  void OnOpen() { had_session_ = open_ = true; }
  void OnProgress();

  // A session, or the attempt to open one, ended with `status`. Returns how long to wait before the next attempt, or
  // the error with which to give up: `status` if nothing survives it or it is the end of the run, Unavailable after
  // `limit` without success.
  absl::StatusOr<absl::Duration> OnFailure(const absl::Status& status, absl::Time now, absl::Duration limit);

  // Returns how long nobody had answered at the last failure.
  absl::Duration absence() const { return absence_; }

 private:
  absl::StatusOr<absl::Duration> OnEndOfRun(const absl::Status& status, absl::Time now, absl::Duration limit);

  const std::string chief_;
  Backoff backoff_;
  // About the attempt under way.
  bool answered_ = false;
  bool open_ = false;
  // Until a session brings something: how often another may be opened without a delay.
  int at_once_left_ = kAtOnce;
  // The first failure since the chief answered.
  absl::Time absent_since_;
  absl::Duration absence_;
  // The first of the sessions that were opened, one after the other, failed and brought nothing.
  absl::optional<absl::Time> fruitless_since_;
  bool had_session_ = false;
  // The first of the attempts, one after the other, that found the run to be over.
  absl::optional<absl::Time> over_since_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_RETRIES_H_

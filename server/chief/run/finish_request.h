#ifndef LOCKSTEP_SERVER_CHIEF_RUN_FINISH_REQUEST_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_FINISH_REQUEST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/base/backoff.h"

namespace lockstep {

// A worker's request to finish the run, until the end is recorded or abandoned. If recording fails temporarily, for
// example because the disk is full, it is retried with growing delays. Pure: the caller passes the time.
//
//   state         Set           due(now)  OnTried(OK)  OnTried(may pass)   OnTried(any other error)
//   none          pending, due  no        -            -                   -
//   pending, due  (ignored)     yes       none         pending, due later  none
class FinishRequest {
 public:
  explicit FinishRequest(uint64_t seed = 0);

  // `reason` must not be empty.
  void Set(const std::string& reason);
  bool pending() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  // Returns the time of the next attempt, or InfiniteFuture if there is no request.
  absl::Time due() const { return pending() ? due_ : absl::InfiniteFuture(); }

  // Records the result of an attempt. Returns true if another attempt will follow.
  bool OnTried(const absl::Status& status, absl::Time now);

 private:
  std::string reason_;
  absl::Time due_ = absl::InfinitePast();
  Backoff delays_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_FINISH_REQUEST_H_

#ifndef LOCKSTEP_SERVER_CHIEF_RUN_END_WISH_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_END_WISH_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/base/backoff.h"

namespace lockstep {

// A worker's wish for the end of the run, until it is recorded or given up: what a full disk refuses is tried again,
// after a growing delay. Pure: the time comes in, decisions go out.
//
//   state      Want         due(now)                OnTried(OK)  OnTried(may pass)  OnTried(any other error)
//   no wish    wish, due    no                      -            -                  -
//   wish, due  (ignored)    yes                     no wish      wish, due later    no wish
class EndWish {
 public:
  explicit EndWish(uint64_t seed = 0);

  // `reason` is not empty.
  void Want(const std::string& reason);
  bool wanted() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  // When to try to carry it out, next; infinite when there is no wish.
  absl::Time due() const { return wanted() ? due_ : absl::InfiniteFuture(); }

  // It was tried. Returns whether it will be again.
  bool OnTried(const absl::Status& status, absl::Time now);

 private:
  std::string reason_;
  absl::Time due_ = absl::InfinitePast();
  Backoff delays_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_END_WISH_H_

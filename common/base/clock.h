#ifndef LOCKSTEP_COMMON_BASE_CLOCK_H_
#define LOCKSTEP_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// The source of time for all other classes. Thread-safe.
class Clock {
 public:
  // The machine's clocks; never destroyed.
  static Clock* Real();

  virtual ~Clock() = default;

  // Monotonic time, for durations and deadlines. Its origin has no meaning. Setting the wall clock does not change it,
  // and it stands still while the machine is suspended.
  virtual absl::Time Now() = 0;

  // The date, for time stamps that people and other programs read. It may jump either way at any time: do not wait for
  // it or compute differences.
  virtual absl::Time WallTime() = 0;

  // Waits on `cv`, with `mutex` held, until it is signalled or Now() reaches `deadline`. May wake without cause.
  // Returns true when the deadline has passed.
  virtual bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  // Blocks the caller. Only for loops that nothing needs to wake; all other code waits on a CondVar.
  void Sleep(absl::Duration duration);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CLOCK_H_

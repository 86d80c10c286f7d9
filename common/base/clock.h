#ifndef LOCKSTEP_COMMON_BASE_CLOCK_H_
#define LOCKSTEP_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// The source of time for all other classes. Thread-safe.
class Clock {
 public:
  // Returns the clock of this machine, which is never destroyed.
  static Clock* Real();

  virtual ~Clock() = default;

  // Monotonic time, for durations and deadlines. Its origin is arbitrary. Setting the wall clock does not change it,
  // and it stands still while the machine is suspended.
  virtual absl::Time Now() = 0;

  // Wall-clock time, for timestamps that people and other programs read. It may jump forward or back at any time, so do
  // not wait for it or compute differences from it.
  virtual absl::Time WallTime() = 0;

  // Waits on `cv`, with `mutex` held, until it is signaled or Now() reaches `deadline`. May wake spuriously. Returns
  // true if the deadline has passed.
  virtual bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  // Blocks the caller. Only for loops that nothing needs to wake; all other code waits on a CondVar.
  void Sleep(absl::Duration duration);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CLOCK_H_

#ifndef LOCKSTEP_COMMON_BASE_CLOCK_H_
#define LOCKSTEP_COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace lockstep {

// Time, as every other class sees it. Thread-safe.
class Clock {
 public:
  // The machine's clock; never destroyed.
  static Clock* Real();

  virtual ~Clock() = default;

  virtual absl::Time Now() = 0;

  // Waits on `cv` with `mutex` held until it is signalled or `deadline` has passed on this clock.
  // May wake without cause. Returns true when the deadline has passed.
  virtual bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  // Blocks the caller. For loops that nobody needs to wake; everything else waits on a CondVar.
  void Sleep(absl::Duration duration);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_CLOCK_H_

#ifndef LOCKSTEP_COMMON_BASE_TESTING_SIMULATED_CLOCK_H_
#define LOCKSTEP_COMMON_BASE_TESTING_SIMULATED_CLOCK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"

namespace lockstep {

// A clock for tests that moves only when it is advanced. Both of its times start at 2020-01-01 00:00 UTC and advance
// together. Waiters wake in the order of their deadlines. Thread-safe.
class SimulatedClock : public Clock {
 public:
  absl::Time Now() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time WallTime() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Advances the time and wakes the waiters whose deadlines have passed.
  void Advance(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);
  // Acts as if the user had set the date: WallTime jumps by `duration`, which may be negative; Now does not change.
  void SetWallClock(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks (in real time, without polling) until `count` threads are waiting for deadlines of this clock that have not
  // passed.
  void AwaitWaiters(int count) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of threads that are waiting for such deadlines.
  int waiters() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    CondVar* cv;
    Mutex* mutex;
    // True if Advance has notified the waiter, whose mutex may then be gone. Guarded by *mutex.
    std::shared_ptr<bool> called;
  };

  Mutex mutex_;
  CondVar waiters_changed_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1577836800);
  // WallTime() - Now().
  absl::Duration wall_offset_ ABSL_GUARDED_BY(mutex_);
  // Waiters by deadline and order of arrival. The Advance that notifies a waiter removes it.
  std::map<std::pair<absl::Time, int64_t>, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  int64_t waiters_so_far_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_TESTING_SIMULATED_CLOCK_H_

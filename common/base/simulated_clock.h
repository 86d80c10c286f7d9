#ifndef LOCKSTEP_COMMON_BASE_SIMULATED_CLOCK_H_
#define LOCKSTEP_COMMON_BASE_SIMULATED_CLOCK_H_

#include <map>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace lockstep {

// A clock that moves only when told, for tests. Both of its times start at 2020-01-01 00:00 UTC and advance together.
// Waiters wake in the order of their deadlines. Thread-safe.
class SimulatedClock : public Clock {
 public:
  absl::Time Now() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time WallTime() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Moves the time and wakes those whose deadline has come.
  void Advance(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);
  // Somebody sets the date: WallTime jumps by `duration`, which may be negative, and Now does not notice.
  void SetWallClock(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks (in real time, no polling) until `count` threads wait for a deadline of this clock that has not come.
  void AwaitWaiters(int count) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    CondVar* cv;
    Mutex* mutex;
  };

  Mutex mutex_;
  CondVar waiters_changed_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1577836800);
  // WallTime() - Now().
  absl::Duration wall_offset_ ABSL_GUARDED_BY(mutex_);
  std::multimap<absl::Time, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_SIMULATED_CLOCK_H_

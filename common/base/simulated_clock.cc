#include "common/base/simulated_clock.h"

#include <iterator>
#include <vector>

namespace lockstep {

absl::Time SimulatedClock::Now() {
  MutexLock lock(&mutex_);
  return now_;
}

absl::Time SimulatedClock::WallTime() {
  MutexLock lock(&mutex_);
  return now_ + wall_offset_;
}

void SimulatedClock::SetWallClock(absl::Duration duration) {
  MutexLock lock(&mutex_);
  wall_offset_ += duration;
}

bool SimulatedClock::WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) {
  std::multimap<absl::Time, Waiter>::iterator waiter;
  {
    MutexLock lock(&mutex_);
    if (now_ >= deadline) return true;
    waiter = waiters_.insert({deadline, Waiter{cv, mutex}});
    waiters_changed_.SignalAll();
  }
  cv->Wait(mutex);
  MutexLock lock(&mutex_);
  waiters_.erase(waiter);
  waiters_changed_.SignalAll();
  return now_ >= deadline;
}

void SimulatedClock::Advance(absl::Duration duration) {
  std::vector<Waiter> due;
  {
    MutexLock lock(&mutex_);
    now_ += duration;
    for (auto it = waiters_.begin(); it != waiters_.end() && it->first <= now_; ++it) due.push_back(it->second);
  }
  for (const Waiter& waiter : due) {
    // With its mutex held the waiter is inside Wait or has left it, never between the test and the wait.
    MutexLock lock(waiter.mutex);
    waiter.cv->SignalAll();
  }
}

void SimulatedClock::AwaitWaiters(int count) {
  MutexLock lock(&mutex_);
  // Those whose deadline has come are about to leave.
  while (std::distance(waiters_.upper_bound(now_), waiters_.end()) < count) waiters_changed_.Wait(&mutex_);
}

}  // namespace lockstep

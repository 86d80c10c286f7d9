#include "lockstep/common/base/testing/simulated_clock.h"

#include <memory>
#include <utility>
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
  const auto called = std::make_shared<bool>(false);
  std::pair<absl::Time, int64_t> key;
  {
    MutexLock lock(&mutex_);
    if (now_ >= deadline) return true;
    key = {deadline, waiters_so_far_++};
    waiters_[key] = Waiter{cv, mutex, called};
    waiters_changed_.SignalAll();
  }
  cv->Wait(mutex);
  bool taken = false;
  {
    MutexLock lock(&mutex_);
    taken = waiters_.erase(key) == 0;
    waiters_changed_.SignalAll();
  }
  // An Advance that has taken this waiter is about to lock `mutex`, so `mutex` and `cv` must live until it has notified
  // the waiter.
  while (taken && !*called) cv->Wait(mutex);
  MutexLock lock(&mutex_);
  return now_ >= deadline;
}

void SimulatedClock::Advance(absl::Duration duration) {
  std::vector<Waiter> due;
  {
    MutexLock lock(&mutex_);
    now_ += duration;
    while (!waiters_.empty() && waiters_.begin()->first.first <= now_) {
      due.push_back(waiters_.begin()->second);
      waiters_.erase(waiters_.begin());
    }
    waiters_changed_.SignalAll();
  }
  for (const Waiter& waiter : due) {
    // While this thread holds the waiter's mutex, the waiter is inside Wait or has left it, and is never between its
    // test and its wait.
    MutexLock lock(waiter.mutex);
    *waiter.called = true;
    waiter.cv->SignalAll();
  }
}

void SimulatedClock::AwaitWaiters(int count) {
  MutexLock lock(&mutex_);
  while (static_cast<int>(waiters_.size()) < count) waiters_changed_.Wait(&mutex_);
}

int SimulatedClock::waiters() {
  MutexLock lock(&mutex_);
  return static_cast<int>(waiters_.size());
}

}  // namespace lockstep

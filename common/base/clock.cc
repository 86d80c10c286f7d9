#include "lockstep/common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override {
    return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }

  absl::Time WallTime() override { return absl::Now(); }

  bool WaitUntil(CondVar* cv, Mutex* mutex, absl::Time deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) return true;
    cv->WaitWithTimeout(mutex, left);
    return Now() >= deadline;
  }
};

}  // namespace

Clock* Clock::Real() {
  static Clock* const clock = new RealClock;
  return clock;
}

void Clock::Sleep(absl::Duration duration) {
  Mutex mutex;
  CondVar never_signalled;
  const absl::Time deadline = Now() + duration;
  MutexLock lock(&mutex);
  while (!WaitUntil(&never_signalled, &mutex, deadline)) {
  }
}

}  // namespace lockstep

#ifndef LOCKSTEP_TRAIN_TESTING_JUMPING_CLOCK_H_
#define LOCKSTEP_TRAIN_TESTING_JUMPING_CLOCK_H_

#include <algorithm>

#include "lockstep/common/base/clock.h"

namespace lockstep::train {

// A clock for code that waits in only one thread: each wait returns immediately and advances the time to its deadline.
// Not thread-safe.
class JumpingClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  absl::Time WallTime() override { return now_; }
  bool WaitUntil(CondVar*, Mutex*, absl::Time deadline) override {
    now_ = std::max(now_, deadline);
    return true;
  }
  void Advance(absl::Duration duration) { now_ += duration; }
  // Returns the time since construction.
  absl::Duration elapsed() const { return now_ - start_; }

 private:
  const absl::Time start_ = absl::FromUnixSeconds(1577836800);
  absl::Time now_ = start_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_TESTING_JUMPING_CLOCK_H_

#ifndef LOCKSTEP_COMMON_STEP_STEP_TIMER_H_
#define LOCKSTEP_COMMON_STEP_STEP_TIMER_H_

#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/step/step_times.h"

namespace lockstep {

// A stopwatch that is in one phase at any time. Each change reads the clock once. Not thread-safe.
class StepTimer {
 public:
  enum class Phase { kBatch, kCompute, kSend, kWait };

  // Starts in the phase kWait. `clock` must outlive this object.
  explicit StepTimer(Clock* clock) : clock_(clock), since_(clock->Now()) {}

  // Enters a phase. Returns the previous phase.
  Phase Enter(Phase phase);
  // Returns the times since the last call, and resets them to zero.
  StepTimes Take();

  // A phase that lasts for the lifetime of the object. Does nothing if `timer` is null.
  class Scope {
   public:
    Scope(StepTimer* timer, Phase phase) : timer_(timer) {
      if (timer_ != nullptr) before_ = timer_->Enter(phase);
    }
    ~Scope() {
      if (timer_ != nullptr) timer_->Enter(before_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepTimer* const timer_;
    Phase before_ = Phase::kCompute;
  };

 private:
  absl::Duration* Current();

  Clock* const clock_;
  Phase phase_ = Phase::kWait;
  absl::Time since_;
  StepTimes times_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_STEP_TIMER_H_

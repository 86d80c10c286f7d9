#include "lockstep/common/step/step_timer.h"

#include <utility>

namespace lockstep {

absl::Duration* StepTimer::Current() {
  switch (phase_) {
    case Phase::kBatch:
      return &times_.batch;
    case Phase::kCompute:
      return &times_.compute;
    case Phase::kSend:
      return &times_.send;
    case Phase::kWait:
      break;
  }
  return &times_.wait;
}

StepTimer::Phase StepTimer::Enter(Phase phase) {
  const absl::Time now = clock_->Now();
  *Current() += now - since_;
  since_ = now;
  return std::exchange(phase_, phase);
}

StepTimes StepTimer::Take() {
  Enter(phase_);
  return std::exchange(times_, StepTimes());
}

}  // namespace lockstep

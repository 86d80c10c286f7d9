#ifndef LOCKSTEP_TRAIN_HOOKS_STEP_COUNTER_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_STEP_COUNTER_HOOK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"

namespace lockstep::train {

struct StepCounterOptions {
  Period period = Period::Steps(100);
  Clock* clock = Clock::Real();
};

// A hook that measures and logs global steps per second. On the chief, it also writes them as the summary
// "global_step/sec". The first step only starts the clock. Gates no step.
class StepCounterHook : public Hook {
 public:
  // Returns InvalidArgument if the period is invalid.
  static absl::StatusOr<std::unique_ptr<StepCounterHook>> Create(const StepCounterOptions& options);

  std::string name() const override { return "StepCounterHook"; }
  bool OnlyLooks() const override { return true; }
  absl::Status Begin() override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return false; }

 private:
  explicit StepCounterHook(const SecondOrStepTimer& timer) : timer_(timer) {}

  SecondOrStepTimer timer_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_STEP_COUNTER_HOOK_H_

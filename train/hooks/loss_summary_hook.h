#ifndef LOCKSTEP_TRAIN_HOOKS_LOSS_SUMMARY_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_LOSS_SUMMARY_HOOK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"

namespace lockstep::train {

struct LossSummaryOptions {
  Period period = Period::Steps(100);
  Clock* clock = Clock::Real();
};

// A hook that writes the loss as the summary "loss", at the first run and then periodically. Gates no step. Only for
// the chief.
class LossSummaryHook : public Hook {
 public:
  // Returns InvalidArgument if the period is invalid.
  static absl::StatusOr<std::unique_ptr<LossSummaryHook>> Create(const LossSummaryOptions& options);

  std::string name() const override { return "LossSummaryHook"; }
  bool OnlyLooks() const override { return true; }
  absl::Status Begin() override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return false; }

 private:
  explicit LossSummaryHook(const SecondOrStepTimer& timer) : timer_(timer) {}

  SecondOrStepTimer timer_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_LOSS_SUMMARY_HOOK_H_

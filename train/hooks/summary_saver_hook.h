#ifndef LOCKSTEP_TRAIN_HOOKS_SUMMARY_SAVER_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_SUMMARY_SAVER_HOOK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train {

// Returns the summary of global step `step`. SummaryBuilder (train/events) creates scalars, histograms and images.
// Called only when the summary is due.
using SummaryProvider = std::function<absl::StatusOr<v1::Summary>(Session& session, int64_t step)>;

struct SummarySaverOptions {
  Period period;
  SummaryProvider provider;
  // If true, gates the steps at which the summary is due, so that the provider reads the values of exactly that step.
  // Otherwise they may be up to 64 steps newer.
  bool exact = false;
  Clock* clock = Clock::Real();
};

// A hook that writes a summary to the chief's event file, at the first run and then periodically.
class SummarySaverHook : public Hook {
 public:
  // Returns InvalidArgument if the period is invalid or there is no provider.
  static absl::StatusOr<std::unique_ptr<SummarySaverHook>> Create(const SummarySaverOptions& options);

  std::string name() const override { return "SummarySaverHook"; }
  bool OnlyLooks() const override { return true; }
  absl::Status Begin() override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return options_.exact && timer_.MayTriggerAt(step); }

 private:
  SummarySaverHook(const SummarySaverOptions& options, const SecondOrStepTimer& timer)
      : options_(options), timer_(timer) {}

  const SummarySaverOptions options_;
  SecondOrStepTimer timer_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_SUMMARY_SAVER_HOOK_H_

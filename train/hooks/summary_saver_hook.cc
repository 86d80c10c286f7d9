#include "lockstep/train/hooks/summary_saver_hook.h"

#include "absl/memory/memory.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<SummarySaverHook>> SummarySaverHook::Create(const SummarySaverOptions& options) {
  ASSIGN_OR_RETURN(const auto timer, SecondOrStepTimer::Create(options.period, options.clock, "SummarySaverHook: "));
  if (!options.provider) {
    return absl::InvalidArgumentError("SummarySaverHook has no provider: give the function that makes the summary");
  }
  return absl::WrapUnique(new SummarySaverHook(options, timer));
}

absl::Status SummarySaverHook::Begin() {
  timer_.Reset();
  return absl::OkStatus();
}

absl::Status SummarySaverHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  timer_.Update(step);
  ASSIGN_OR_RETURN(const v1::Summary summary, options_.provider(context.session(), step));
  return context.session().AddOwnSummary(summary, step);
}

}  // namespace lockstep::train

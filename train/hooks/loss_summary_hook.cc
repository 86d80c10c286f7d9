#include "lockstep/train/hooks/loss_summary_hook.h"

#include "absl/memory/memory.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/events/summary_builder.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<LossSummaryHook>> LossSummaryHook::Create(const LossSummaryOptions& options) {
  ASSIGN_OR_RETURN(const auto timer, SecondOrStepTimer::Create(options.period, options.clock, "LossSummaryHook: "));
  return absl::WrapUnique(new LossSummaryHook(timer));
}

absl::Status LossSummaryHook::Begin() {
  timer_.Reset();
  return absl::OkStatus();
}

absl::Status LossSummaryHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  timer_.Update(step);
  return context.session().AddOwnSummary(ScalarSummary("loss", values.result.loss), step);
}

}  // namespace lockstep::train

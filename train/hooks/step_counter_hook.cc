#include "lockstep/train/hooks/step_counter_hook.h"

#include "absl/memory/memory.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/events/summary_builder.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<StepCounterHook>> StepCounterHook::Create(const StepCounterOptions& options) {
  ASSIGN_OR_RETURN(const auto timer, SecondOrStepTimer::Create(options.period, options.clock, "StepCounterHook: "));
  return absl::WrapUnique(new StepCounterHook(timer));
}

absl::Status StepCounterHook::Begin() {
  timer_.Reset();
  return absl::OkStatus();
}

absl::Status StepCounterHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  const auto elapsed = timer_.Update(step);
  // There is no rate if the clock has not advanced.
  if (!elapsed || elapsed->time <= absl::ZeroDuration()) return absl::OkStatus();
  const double rate = static_cast<double>(elapsed->steps) / absl::ToDoubleSeconds(elapsed->time);
  LOG(INFO) << "global_step/sec: " << rate;
  if (!context.session().is_chief()) return absl::OkStatus();
  return context.session().AddOwnSummary(ScalarSummary("global_step/sec", rate), step);
}

}  // namespace lockstep::train

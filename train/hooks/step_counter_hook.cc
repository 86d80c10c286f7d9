#include "lockstep/train/hooks/step_counter_hook.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<StepCounterHook>> StepCounterHook::Create(const StepCounterOptions& options) {
  const auto timer = SecondOrStepTimer::Create(options.period, options.clock);
  if (!timer.ok()) return absl::InvalidArgumentError(absl::StrCat("StepCounterHook: ", timer.status().message()));
  return absl::WrapUnique(new StepCounterHook(*timer));
}

absl::Status StepCounterHook::Begin() {
  timer_.Reset();
  return absl::OkStatus();
}

absl::Status StepCounterHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  const auto elapsed = timer_.Update(step);
  // No time at all: a clock that stands still has no rate.
  if (!elapsed || elapsed->time <= absl::ZeroDuration()) return absl::OkStatus();
  const double rate = static_cast<double>(elapsed->steps) / absl::ToDoubleSeconds(elapsed->time);
  LOG(INFO) << "global_step/sec: " << rate;
  if (!context.session().is_chief()) return absl::OkStatus();
  v1::Summary summary;
  v1::Summary::Value* value = summary.add_value();
  value->set_tag("global_step/sec");
  value->set_simple_value(static_cast<float>(rate));
  return context.session().AddSummary(summary, step);
}

}  // namespace lockstep::train

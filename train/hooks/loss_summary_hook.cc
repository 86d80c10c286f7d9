#include "lockstep/train/hooks/loss_summary_hook.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<LossSummaryHook>> LossSummaryHook::Create(const LossSummaryOptions& options) {
  const auto timer = SecondOrStepTimer::Create(options.period, options.clock);
  if (!timer.ok()) return absl::InvalidArgumentError(absl::StrCat("LossSummaryHook: ", timer.status().message()));
  return absl::WrapUnique(new LossSummaryHook(*timer));
}

absl::Status LossSummaryHook::Begin() {
  timer_.Reset();
  return absl::OkStatus();
}

absl::Status LossSummaryHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!timer_.ShouldTrigger(step)) return absl::OkStatus();
  timer_.Update(step);
  v1::Summary summary;
  v1::Summary::Value* value = summary.add_value();
  value->set_tag("loss");
  value->set_simple_value(static_cast<float>(values.result.loss));
  return context.session().AddSummary(summary, step);
}

}  // namespace lockstep::train

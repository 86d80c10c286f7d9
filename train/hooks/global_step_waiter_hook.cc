#include "lockstep/train/hooks/global_step_waiter_hook.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/status_macros.h"

namespace lockstep::train {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(30);

}  // namespace

absl::StatusOr<std::unique_ptr<GlobalStepWaiterHook>> GlobalStepWaiterHook::Create(
    const GlobalStepWaiterOptions& options) {
  if (options.poll_interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("GlobalStepWaiterHook's poll_interval is ",
                                                   absl::FormatDuration(options.poll_interval),
                                                   " where more than 0 is expected"));
  }
  return absl::WrapUnique(new GlobalStepWaiterHook(options));
}

absl::Status GlobalStepWaiterHook::BeforeRun(RunContext& context) {
  if (waited_ || options_.wait_until_step <= 0) return absl::OkStatus();
  if (context.session().is_chief()) {
    waited_ = true;
    LOG(WARNING) << "GlobalStepWaiterHook does not wait for global step " << options_.wait_until_step
                 << " on the chief: its hooks follow the steps";
    return absl::OkStatus();
  }
  absl::Time next_log = options_.clock->Now();
  while (!context.session().ShouldStop()) {
    ASSIGN_OR_RETURN(const int64_t step, context.session().GlobalStep());
    if (step >= options_.wait_until_step) {
      waited_ = true;
      return absl::OkStatus();
    }
    // Meanwhile, other workers compute, including the steps that this hook waits for.
    context.session().LimitHold(absl::ZeroDuration());
    if (options_.clock->Now() >= next_log) {
      LOG(INFO) << "Waiting for global step " << options_.wait_until_step << " before training; it is " << step;
      next_log = options_.clock->Now() + kLogInterval;
    }
    options_.clock->Sleep(options_.poll_interval);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::train

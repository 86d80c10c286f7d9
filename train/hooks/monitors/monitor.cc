#include "lockstep/train/hooks/monitors/monitor.h"

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hook_state.h"

namespace lockstep::train {
namespace {

std::string Text(const absl::optional<int64_t>& number) { return number ? absl::StrCat(*number) : "none"; }

}  // namespace

absl::Status Monitor::Begin(absl::optional<int64_t> max_steps) {
  if (begun_) return absl::InvalidArgumentError("Begin was called twice without End");
  begun_ = true;
  max_steps_ = max_steps;
  return absl::OkStatus();
}

absl::Status Monitor::End(Session& session) {
  if (!begun_) return absl::InvalidArgumentError("End was called without Begin");
  begun_ = false;
  max_steps_.reset();
  return absl::OkStatus();
}

absl::Status Monitor::EpochBegin(int64_t epoch) {
  if (epoch_) return absl::InvalidArgumentError("EpochBegin was called twice without EpochEnd");
  if (epoch < 0) return absl::InvalidArgumentError(absl::StrCat("epoch ", epoch, " where at least 0 is expected"));
  epoch_ = epoch;
  return absl::OkStatus();
}

absl::Status Monitor::EpochEnd(int64_t epoch) {
  if (epoch_ != epoch) {
    return absl::InvalidArgumentError(absl::StrCat("the end of epoch ", epoch, " in epoch ", Text(epoch_)));
  }
  epoch_.reset();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Monitor::StepBegin(int64_t step) {
  if (step < 0 || (max_steps_ && step > *max_steps_)) {
    return absl::InvalidArgumentError(absl::StrCat("step ", step, " where 0 to ", Text(max_steps_), " is expected"));
  }
  step_ = step;
  return std::vector<std::string>();
}

absl::StatusOr<bool> Monitor::StepEnd(int64_t step, const RunValues& values) {
  if (step_ != step) {
    return absl::InvalidArgumentError(absl::StrCat("the end of step ", step, " in step ", Text(step_)));
  }
  step_.reset();
  return false;
}

bool EveryN::IsActive(int64_t step) const {
  return step <= first_n_steps_ || step >= last_active_step_ + every_n_steps_ || step == max_steps();
}

absl::StatusOr<std::vector<std::string>> EveryN::StepBegin(int64_t step) {
  RETURN_IF_ERROR(Monitor::StepBegin(step).status());
  active_ = IsActive(step);
  return active_ ? EveryNStepBegin(step) : std::vector<std::string>();
}

absl::StatusOr<bool> EveryN::StepEnd(int64_t step, const RunValues& values) {
  RETURN_IF_ERROR(Monitor::StepEnd(step, values).status());
  return active_ ? EveryNStepEnd(step, values) : false;
}

absl::Status EveryN::PostStep(int64_t step, Session& session) {
  RETURN_IF_ERROR(Monitor::PostStep(step, session));
  if (active_) {
    RETURN_IF_ERROR(EveryNPostStep(step, session));
    last_active_step_ = step;
  }
  last_step_ = step;
  return absl::OkStatus();
}

absl::Status EveryN::End(Session& session) {
  RETURN_IF_ERROR(Monitor::End(session));
  if (!last_step_ || *last_step_ == last_active_step_) return absl::OkStatus();
  return EveryNPostStep(*last_step_, session);
}

std::string EveryN::State() const {
  HookState state;
  state.SetInt("last_active_step", last_active_step_);
  return state.Serialize();
}

absl::Status EveryN::SetState(absl::string_view text) {
  ASSIGN_OR_RETURN(const HookState state, HookState::Parse(text));
  return state.GetInt("last_active_step", &last_active_step_);
}

}  // namespace lockstep::train

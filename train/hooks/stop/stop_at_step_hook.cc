#include "lockstep/train/hooks/stop/stop_at_step_hook.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hook_state.h"

namespace lockstep::train {

absl::StatusOr<StopAtStepTarget> StopAtStepTarget::Create(absl::string_view owner, const StopAtStepOptions& options) {
  if (options.num_steps.has_value() == options.last_step.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(owner, " was given ", options.num_steps ? "both" : "neither",
                                                   " num_steps and last_step where exactly one is expected"));
  }
  const int64_t steps = options.num_steps ? *options.num_steps : *options.last_step;
  if (steps >= 1) return StopAtStepTarget(options);
  return absl::InvalidArgumentError(absl::StrCat(owner, "'s ", options.num_steps ? "num_steps" : "last_step", " is ",
                                                 steps, " where at least 1 is expected"));
}

std::string StopAtStepTarget::State() const {
  if (!options_.num_steps || !last_step_ || reached_) return "";
  HookState state;
  state.SetInt("num_steps", *options_.num_steps);
  state.SetInt("last_step", *last_step_);
  return state.Serialize();
}

absl::Status StopAtStepTarget::SetState(absl::string_view text) {
  ASSIGN_OR_RETURN(const HookState state, HookState::Parse(text));
  int64_t num_steps = 0, last_step = 0;
  RETURN_IF_ERROR(state.GetInt("num_steps", &num_steps));
  RETURN_IF_ERROR(state.GetInt("last_step", &last_step));
  if (options_.num_steps == num_steps) last_step_ = last_step;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StopAtStepHook>> StopAtStepHook::Create(const StopAtStepOptions& options) {
  ASSIGN_OR_RETURN(const auto target, StopAtStepTarget::Create("StopAtStepHook", options));
  return absl::WrapUnique(new StopAtStepHook(target));
}

absl::Status StopAtStepHook::AfterCreateSession(Session& session) {
  if (target_.last_step()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t step, session.GlobalStep());
  target_.CountFrom(step);
  return absl::OkStatus();
}

absl::Status StopAtStepHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t last_step = *target_.last_step();
  if (values.result.global_step < last_step) return absl::OkStatus();
  // On a worker, a block's step may not be committed yet.
  ASSIGN_OR_RETURN(const int64_t step, context.session().GlobalStep());
  if (step < last_step) return absl::OkStatus();
  target_.set_reached();
  context.RequestStop(absl::StrCat("global step ", last_step, " is reached"));
  return absl::OkStatus();
}

}  // namespace lockstep::train

#include "lockstep/train/hooks/stop/stop_at_step_hook.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hook_state.h"

namespace lockstep::train {

absl::Status CheckStopAtStep(absl::string_view owner, const StopAtStepOptions& options) {
  if (options.num_steps.has_value() == options.last_step.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(owner, " was given ", options.num_steps ? "both" : "neither",
                                                   " num_steps and last_step where exactly one is expected"));
  }
  const int64_t steps = options.num_steps ? *options.num_steps : *options.last_step;
  if (steps >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(owner, "'s ", options.num_steps ? "num_steps" : "last_step", " is ",
                                                 steps, " where at least 1 is expected"));
}

std::string StopAtStepState::Serialize() const {
  HookState state;
  state.SetInt("num_steps", num_steps);
  state.SetInt("last_step", last_step);
  return state.Serialize();
}

absl::StatusOr<StopAtStepState> StopAtStepState::Parse(absl::string_view text) {
  ASSIGN_OR_RETURN(const HookState state, HookState::Parse(text));
  StopAtStepState parsed;
  RETURN_IF_ERROR(state.GetInt("num_steps", &parsed.num_steps));
  RETURN_IF_ERROR(state.GetInt("last_step", &parsed.last_step));
  return parsed;
}

absl::StatusOr<std::unique_ptr<StopAtStepHook>> StopAtStepHook::Create(const StopAtStepOptions& options) {
  RETURN_IF_ERROR(CheckStopAtStep("StopAtStepHook", options));
  return absl::WrapUnique(new StopAtStepHook(options));
}

absl::Status StopAtStepHook::AfterCreateSession(Session& session) {
  if (last_step_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t step, session.GlobalStep());
  last_step_ = step + *options_.num_steps;
  return absl::OkStatus();
}

absl::Status StopAtStepHook::AfterRun(RunContext& context, const RunValues& values) {
  if (values.result.global_step < *last_step_) return absl::OkStatus();
  // On a worker the step of a block may not be committed.
  ASSIGN_OR_RETURN(const int64_t step, context.session().GlobalStep());
  if (step < *last_step_) return absl::OkStatus();
  reached_ = true;
  context.RequestStop(absl::StrCat("global step ", *last_step_, " is reached"));
  return absl::OkStatus();
}

std::string StopAtStepHook::State() const {
  if (!options_.num_steps || !last_step_ || reached_) return "";
  return StopAtStepState{*options_.num_steps, *last_step_}.Serialize();
}

absl::Status StopAtStepHook::SetState(absl::string_view text) {
  ASSIGN_OR_RETURN(const StopAtStepState state, StopAtStepState::Parse(text));
  if (options_.num_steps == state.num_steps) last_step_ = state.last_step;
  return absl::OkStatus();
}

}  // namespace lockstep::train

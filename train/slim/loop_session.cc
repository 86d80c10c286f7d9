#include "lockstep/train/slim/loop_session.h"

#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hook_state.h"

namespace lockstep::train::slim {

std::string StepFunctionState::State() const {
  if (!kwargs_.state) return "";
  HookState state;
  state.SetText("state", kwargs_.state(kwargs_));
  return state.Serialize();
}

absl::Status StepFunctionState::SetState(absl::string_view text) {
  if (!kwargs_.set_state) {
    return absl::InvalidArgumentError("the checkpoint has a state, and train_step_kwargs has no set_state");
  }
  ASSIGN_OR_RETURN(const HookState state, HookState::Parse(text));
  std::string own;
  RETURN_IF_ERROR(state.GetText("state", &own));
  return kwargs_.set_state(kwargs_, own);
}

absl::Status LoopSession::Start() {
  if (hooked_ != nullptr) return absl::OkStatus();
  HookedSession::Options options;
  options.hooks = options_.hooks;
  options.initial_states = options_.initial_states;
  options.gate = held_.gate;
  options.gate_loop = options_.gate_loop;
  options.loop_keeps_states = options_.gate_loop;
  options.recover = true;
  ASSIGN_OR_RETURN(const int64_t opened, held_.session->GlobalStep());
  ASSIGN_OR_RETURN(hooked_, HookedSession::Open(held_.session.get(), std::move(options)));
  if (options_.gate_loop || held_.gate == nullptr) return absl::OkStatus();
  // Shows an earlier chief's steps only to the hooks, because the loop has nothing to decide about them.
  while (!hooked_->stop_requested()) {
    ASSIGN_OR_RETURN(const int64_t next, hooked_->NextStep());
    if (next >= opened) break;
    RETURN_IF_ERROR(hooked_->Run(TrainOp()).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<StepResult> LoopSession::Run(const TrainOp& op) {
  RETURN_IF_ERROR(Start());
  if (hooked_->stop_requested()) return absl::OutOfRangeError("a hook has requested the stop");
  return hooked_->Run(op);
}

absl::StatusOr<int64_t> LoopSession::NextStep() {
  RETURN_IF_ERROR(Start());
  return hooked_->NextStep();
}

}  // namespace lockstep::train::slim

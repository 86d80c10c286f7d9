#include "lockstep/train/hooks/stop/early_stopping_hook.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hook_state.h"

namespace lockstep::train {

absl::StatusOr<std::unique_ptr<EarlyStoppingHook>> EarlyStoppingHook::Create(const EarlyStoppingOptions& options) {
  const auto out_of_range = [](absl::string_view option, auto value, absl::string_view least) {
    return absl::InvalidArgumentError(
        absl::StrCat("EarlyStoppingHook's ", option, " is ", value, " where at least ", least, " is expected"));
  };
  if (options.patience < 1) return out_of_range("patience", options.patience, "1");
  if (options.every_n_steps < 1) return out_of_range("every_n_steps", options.every_n_steps, "1");
  if (!(options.min_delta >= 0)) return out_of_range("min_delta", options.min_delta, "0");
  if (options.name.empty()) return absl::InvalidArgumentError("EarlyStoppingHook's name is empty");
  return absl::WrapUnique(new EarlyStoppingHook(options));
}

absl::Status EarlyStoppingHook::AfterCreateSession(Session& session) {
  if (!options_.stay_stopped || checks_ < options_.patience) return absl::OkStatus();
  return session.RequestStop(absl::StrCat(name(), " has stopped the run before"));
}

absl::Status EarlyStoppingHook::AfterRun(RunContext& context, const RunValues& values) {
  const int64_t step = values.result.global_step;
  if (!GatesAt(step)) return absl::OkStatus();
  double value = values.result.loss;
  if (options_.metric) {
    ASSIGN_OR_RETURN(value, options_.metric(context.session(), values));
  }
  checks_ = best_.Observe(step, value) ? 0 : checks_ + 1;
  if (checks_ < options_.patience) return absl::OkStatus();
  context.RequestStop(absl::StrCat("no improvement in ", checks_, " checks up to global step ", step, ": best ",
                                   *best_.value(), " at ", *best_.step(), ", now ", value));
  return absl::OkStatus();
}

std::string EarlyStoppingHook::State() const {
  HookState state;
  best_.Save(&state);
  state.SetInt("checks", checks_);
  return state.Serialize();
}

absl::Status EarlyStoppingHook::SetState(absl::string_view text) {
  ASSIGN_OR_RETURN(const HookState state, HookState::Parse(text));
  RETURN_IF_ERROR(best_.Restore(state));
  return state.GetInt("checks", &checks_);
}

}  // namespace lockstep::train

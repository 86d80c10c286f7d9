#include "lockstep/train/hooks/base/hooked_session.h"

#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/utf8.h"
#include "lockstep/train/session/end/reject_out_of_range.h"

namespace lockstep::train {
namespace {

absl::Status Named(const Hook& hook, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("hook ", hook.name(), ": ", status.message()));
}

// Calls a function of the hook, and adds the hook's name to any error or exception.
absl::Status Call(const Hook& hook, absl::FunctionRef<absl::Status()> function) {
  return Named(hook, CatchExceptions(function));
}

// Like Call, but for calls before the first run, where OutOfRange is an error.
absl::Status Prepare(const Hook& hook, absl::FunctionRef<absl::Status()> function) {
  return RejectOutOfRange(Call(hook, function));
}

// The maximum size of the states of all hooks together. A checkpoint holds them in one protobuf message.
constexpr size_t kMaxStateBytes = size_t{1} << 30;

// Ignores Unknown. Whether the end was recorded may become known only after the run has ended, in which case Close
// returns the outcome.
absl::Status Ended(absl::Status status) { return absl::IsUnknown(status) ? absl::OkStatus() : status; }

std::vector<Hook*> PartsOf(absl::Span<Hook* const> hooks) {
  std::vector<Hook*> parts;
  for (Hook* hook : hooks) {
    for (Hook* part : hook->StateParts()) parts.push_back(part);
  }
  return parts;
}

// Returns true if the loop ended without an error.
bool EndsWell(const absl::Status& status) { return status.ok() || absl::IsOutOfRange(status); }

}  // namespace

absl::Status BeginHooks(absl::Span<Hook* const> hooks) {
  for (Hook* hook : hooks) RETURN_IF_ERROR(Prepare(*hook, [&] { return hook->Begin(); }));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> StatesOf(absl::Span<Hook* const> hooks) {
  std::vector<std::string> states;
  for (const Hook* part : PartsOf(hooks)) {
    RETURN_IF_ERROR(Call(*part, [&] {
      states.push_back(part->State());
      return absl::OkStatus();
    }));
  }
  return states;
}

HookedSession::HookedSession(Session* session, Options options)
    : SessionDecorator(session),
      base_(session),
      outside_(session),
      view_(session, this),
      options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<HookedSession>> HookedSession::Open(Session* session, Options options) {
  std::unique_ptr<HookedSession> hooked(new HookedSession(session, std::move(options)));
  RETURN_IF_ERROR(CatchExceptions([&] { return hooked->Start(); }));
  return hooked;
}

absl::Status HookedSession::Start() {
  v1::SessionState restored;
  if (options_.gate != nullptr) restored = options_.gate->restored();
  if (restored.hook_size() > 0) {
    RETURN_IF_ERROR(RestoreStates(restored));
    // The states may be some steps older than the end of the run. If the run is over and no hook keeps state, the hooks
    // see none of its steps again.
    const bool keeps = absl::c_any_of(restored.hook(), [](const auto& hook) { return !hook.state().empty(); });
    const bool shows = keeps || !base_->ShouldStop();
    ASSIGN_OR_RETURN(step_, shows ? absl::StatusOr<int64_t>(restored.step()) : base_->GlobalStep());
    repeated_assignments_ = restored.assignments_by_hooks();
    repeated_changes_ = restored.changes_by_hooks();
    options_.gate->SeekTo(step_);
  } else {
    ASSIGN_OR_RETURN(step_, base_->GlobalStep());
    if (options_.gate != nullptr) RETURN_IF_ERROR(ResetStates());
  }
  for (Hook* hook : options_.hooks) {
    const absl::Status created = Call(*hook, [&] { return hook->AfterCreateSession(outside_); });
    // If the run is over, the session reports OutOfRange to hooks.
    RETURN_IF_ERROR(base_->ShouldStop() ? created : RejectOutOfRange(created));
  }
  if (options_.gate == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(auto states, States());
  options_.gate->SetState(step_, std::move(states));
  kept_step_ = step_;
  AllowBeforeRun();
  return absl::OkStatus();
}

absl::Status HookedSession::RestoreStates(const v1::SessionState& restored) {
  std::map<std::string, v1::SessionState::Hook> states;
  for (const auto& hook : restored.hook()) {
    v1::SessionState::Hook& state = states[hook.name()];
    if (!hook.state().empty()) state = hook;
  }
  std::set<std::string> present;
  std::vector<std::string> without_state, without_hook;
  for (Hook* part : PartsOf(options_.hooks)) {
    const std::string name = part->name();
    const auto state = states.find(name);
    const bool kept = state != states.end() && !state->second.state().empty();
    if (!present.insert(name).second && kept) {
      return absl::InvalidArgumentError(
          absl::StrCat("two hooks are named ", name, ", and the checkpoint has one state"));
    }
    if (kept) {
      RETURN_IF_ERROR(Prepare(*part, [&] { return part->SetState(state->second.state()); }));
    } else if (state == states.end() && !part->OnlyLooks() && !part->State().empty()) {
      without_state.push_back(name);
    }
  }
  for (const auto& [name, hook] : states) {
    if (!hook.state().empty() && !hook.only_looks() && present.count(name) == 0) without_hook.push_back(name);
  }
  return CheckSameHooks(restored.step(), without_hook, without_state);
}

absl::Status HookedSession::CheckSameHooks(int64_t step, absl::Span<const std::string> missing,
                                           absl::Span<const std::string> added) const {
  if (missing.empty() && added.empty()) return absl::OkStatus();
  if (options_.gate->MayChangeProgram()) {
    std::vector<std::string> changes;
    if (!missing.empty()) changes.push_back(absl::StrCat("no longer has ", absl::StrJoin(missing, ", ")));
    if (!added.empty()) changes.push_back(absl::StrCat("has the new ", absl::StrJoin(added, ", ")));
    options_.gate->NoteProgramChange(absl::StrJoin(changes, ", "));
    return absl::OkStatus();
  }
  std::string message =
      absl::StrCat("the checkpoint of global step ", step, " is of an unfinished run with other hooks:");
  if (!missing.empty()) {
    absl::StrAppend(&message, " it has a state of ", absl::StrJoin(missing, ", "), ", not here now.");
  }
  if (!added.empty()) {
    absl::StrAppend(&message, " It has no state of ", absl::StrJoin(added, ", "), ", needed here.");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(message,
                   " Continue with the hooks of before; once the run has ended well, hooks may differ. Or start a new "
                   "run in another logdir, from these variables (checkpoint.warm_start). A hook or monitor that only "
                   "looks may always differ, if its OnlyLooks says so"));
}

absl::Status HookedSession::ResetStates() {
  const std::vector<Hook*> parts = PartsOf(options_.hooks);
  for (size_t i = 0; i < options_.initial_states.size(); ++i) {
    Hook* const part = parts[i];
    const std::string& state = options_.initial_states[i];
    if (state.empty() || part->State() == state) continue;
    RETURN_IF_ERROR(Prepare(*part, [&] { return part->SetState(state); }));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::SessionState::Hook>> HookedSession::States() const {
  std::vector<v1::SessionState::Hook> states;
  size_t bytes = 0;
  // Maps the name of a hook to true if a hook with that name keeps a state.
  std::map<std::string, bool> keeps;
  for (const Hook* part : PartsOf(options_.hooks)) {
    v1::SessionState::Hook entry;
    entry.set_name(part->name());
    RETURN_IF_ERROR(Call(*part, [&] {
      entry.set_state(part->State());
      return absl::OkStatus();
    }));
    if (part->OnlyLooks()) entry.set_only_looks(true);
    if (!IsUtf8(entry.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("a hook's name is not UTF-8: \"", absl::CHexEscape(entry.name()), "\""));
    }
    bytes += entry.state().size();
    if (bytes > kMaxStateBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the states of the hooks up to ", entry.name(), " have ", bytes,
                                                     " bytes; a checkpoint takes ", kMaxStateBytes));
    }
    const auto [same_name, is_new] = keeps.emplace(entry.name(), !entry.state().empty());
    if (!is_new && (same_name->second || !entry.state().empty())) {
      return absl::InvalidArgumentError(
          absl::StrCat("two hooks are named ", entry.name(), ", and one keeps a state: give them different names"));
    }
    states.push_back(std::move(entry));
  }
  return states;
}

int64_t HookedSession::Limit() const {
  for (int64_t step = step_ + 1; step <= step_ + kMaxLag; ++step) {
    for (const Hook* hook : options_.hooks) {
      if (hook->GatesAt(step)) return step - 1;
    }
  }
  return step_ + kMaxLag;
}

void HookedSession::AllowBeforeRun() {
  held_ =
      options_.gate_loop || absl::c_any_of(options_.hooks, [this](const Hook* hook) { return hook->GatesAt(step_); });
  if (!held_) AllowThrough(Limit());
}

void HookedSession::AllowThrough(int64_t limit) {
  const bool ungated = limit == step_ + kMaxLag;
  if (ungated && allowed_ && *allowed_ > limit - kMaxLag / 4) return;
  allowed_ = limit;
  options_.gate->AllowThrough(limit);
}

void HookedSession::NoteStop(const RunContext& context, const Hook& hook) {
  if (context.stop_requested() && stop_reason_.empty()) {
    stop_reason_ = absl::StrCat("hook ", hook.name(), ": ", context.stop_reason());
  }
}

absl::Status HookedSession::CallBeforeRun(RunContext* context) {
  fetched_by_.clear();
  for (Hook* hook : options_.hooks) {
    RETURN_IF_ERROR(Call(*hook, [&] { return hook->BeforeRun(*context); }));
    fetched_by_.resize(context->fetches().size(), hook);
    NoteStop(*context, *hook);
  }
  return absl::OkStatus();
}

absl::Status HookedSession::Fetch(const RunContext& context, RunValues* values) {
  if (context.fetches().empty()) return absl::OkStatus();
  const std::set<std::string> distinct(context.fetches().begin(), context.fetches().end());
  const std::vector<std::string> names(distinct.begin(), distinct.end());
  absl::StatusOr<ReadResult> read = base_->Read(names);
  if (!read.ok()) {
    std::set<std::string> hooks;
    for (const Hook* hook : fetched_by_) hooks.insert(hook->name());
    return absl::Status(read.status().code(), absl::StrCat("reading ", absl::StrJoin(names, ", "), " for hook ",
                                                           absl::StrJoin(hooks, ", "), ": ", read.status().message()));
  }
  values->fetched_step = read->global_step;
  for (NamedTensor& value : read->values) {
    std::string name = value.name;
    values->fetched.emplace(std::move(name), std::move(value));
  }
  return absl::OkStatus();
}

absl::Status HookedSession::CallAfterRun(RunContext* context, const RunValues& values) {
  for (Hook* hook : options_.hooks) {
    RETURN_IF_ERROR(Call(*hook, [&] { return hook->AfterRun(*context, values); }));
    NoteStop(*context, *hook);
  }
  return absl::OkStatus();
}

absl::Status HookedSession::KeepStates() {
  if (options_.gate == nullptr || step_ == kept_step_) return absl::OkStatus();
  repeated_assignments_ = repeated_changes_ = 0;
  kept_step_ = step_;
  ASSIGN_OR_RETURN(auto states, States());
  if (!stop_reason_.empty()) return Ended(options_.gate->EndAt(step_, std::move(states), stop_reason_));
  options_.gate->SetState(step_, std::move(states));
  return absl::OkStatus();
}

absl::Status HookedSession::Advance() {
  if (options_.gate == nullptr) return absl::OkStatus();
  if (!options_.loop_keeps_states) RETURN_IF_ERROR(KeepStates());
  if (stop_reason_.empty()) AllowBeforeRun();
  return absl::OkStatus();
}

absl::Status HookedSession::Fail(const absl::Status& error) {
  if (absl::IsOutOfRange(error)) {
    stop_reason_ = std::string(error.message());
    if (base_->is_chief()) RETURN_IF_ERROR(Ended(base_->RequestStop(stop_reason_)));
    return error;
  }
  failure_ = error;
  const bool recoverable = absl::IsUnavailable(error) || absl::IsAborted(error);
  if (recoverable && (options_.recover || !base_->is_chief())) return error;
  LeaveAfterError();
  return error;
}

void HookedSession::LeaveAfterError() {
  const absl::Status left = base_->is_chief() ? base_->Stop() : base_->Close();
  LOG_IF(ERROR, !left.ok() && left != failure_) << "leaving the run: " << left.message();
  base_closed_ = true;
}

absl::Status HookedSession::AssignByHook(absl::Span<const NamedTensor> values) {
  if (options_.gate == nullptr) return base_->Assign(values);
  if (repeated_assignments_ == 0) return options_.gate->AssignByHook(values);
  --repeated_assignments_;
  return absl::OkStatus();
}

absl::Status HookedSession::ChangeByHook(const SettingsChange& change) {
  if (options_.gate == nullptr) return base_->ChangeSettings(change);
  if (repeated_changes_ == 0) return options_.gate->ChangeByHook(change);
  --repeated_changes_;
  return absl::OkStatus();
}

absl::Status HookedSession::CheckRun() const {
  if (closed_ || base_closed_) return absl::FailedPreconditionError("Run of a session that is closed");
  if (options_.gate != nullptr && options_.loop_keeps_states && step_ - kept_step_ >= kMaxLag) {
    return absl::FailedPreconditionError(absl::StrCat("a step function has taken ", step_ - kept_step_,
                                                      " steps in one call, the most whose updates a checkpoint holds"));
  }
  if (stop_reason_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("Run after a stop was requested by ", stop_reason_));
}

absl::StatusOr<StepResult> HookedSession::RunWithoutHooks(const TrainOp& op) {
  RETURN_IF_ERROR(CheckRun());
  if (options_.gate != nullptr) AllowThrough(step_);
  ASSIGN_OR_RETURN(const StepResult result, base_->Run(op));
  step_ = result.global_step;
  RETURN_IF_ERROR(Advance());
  return result;
}

absl::StatusOr<StepResult> HookedSession::Run(const TrainOp& op) {
  RETURN_IF_ERROR(CheckRun());
  if (options_.gate == nullptr) {
    // A worker's hooks see the block that the worker holds, and their requests to the session are sent with it.
    const absl::StatusOr<int64_t> step = base_->NextStep();
    if (!step.ok()) {
      SetLoopStatus(step.status());
      return step.status();
    }
    step_ = *step;
    if (!options_.hooks.empty()) base_->LimitHold(kMaxHold);
  }
  RunContext context(&view_);
  context.set_global_step(step_);
  absl::Status status = CallBeforeRun(&context);
  if (!status.ok()) return Fail(status);
  if (held_) AllowThrough(options_.gate_loop ? step_ : Limit());
  RunValues values;
  absl::StatusOr<StepResult> result = base_->Run(op);
  if (!result.ok()) {
    SetLoopStatus(result.status());
    return result.status();
  }
  values.result = *result;
  status = Fetch(context, &values);
  if (status.ok()) status = CallAfterRun(&context, values);
  if (!status.ok()) return Fail(status);
  step_ = result->global_step;
  status = Advance();
  if (!status.ok()) return Fail(status);
  return result;
}

bool HookedSession::ShouldStop() { return closed_ || base_closed_ || !stop_reason_.empty() || base_->ShouldStop(); }

void HookedSession::SetLoopStatus(const absl::Status& status) {
  if (failure_.ok() && !EndsWell(status)) failure_ = status;
}

absl::Status HookedSession::Close() {
  if (closed_) return absl::FailedPreconditionError("Close of a session that is closed already");
  closed_ = true;
  if (base_closed_) return failure_;
  // A loop that only calls ShouldStop has not seen why the run failed.
  if (options_.gate != nullptr) SetLoopStatus(options_.gate->failure());
  const absl::Status ended = failure_.ok() ? CallEnd() : absl::OkStatus();
  SetLoopStatus(ended);
  // If the process was asked to stop, Close on a chief's session reports whether the last step was saved.
  if (base_->is_chief() && !failure_.ok() && !absl::IsCancelled(failure_)) {
    LeaveAfterError();
    return failure_;
  }
  const absl::Status closed = base_->Close();
  return ended.ok() ? closed : ended;
}

absl::Status HookedSession::CallEnd() {
  for (Hook* hook : options_.hooks) RETURN_IF_ERROR(Call(*hook, [&] { return hook->End(outside_); }));
  return absl::OkStatus();
}

}  // namespace lockstep::train

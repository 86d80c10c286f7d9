#include "lockstep/train/monitored/monitored_session.h"

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/train/session/end/reject_out_of_range.h"
#include "lockstep/train/session/init/init_op.h"
#include "lockstep/train/session/open_session.h"

namespace lockstep::train {
namespace {

absl::Status CheckOptions(const MonitoredSessionOptions& options) {
  RETURN_IF_ERROR(CheckSessionOptions(options.session));
  RETURN_IF_ERROR(CheckNotNegative("max_wait", options.max_wait));
  RETURN_IF_ERROR(CheckNotNegative("stop_grace", options.stop_grace));
  for (const auto* hooks : {&options.first_hooks, &options.hooks}) {
    if (absl::c_linear_search(*hooks, nullptr)) return absl::InvalidArgumentError("hooks: one of them is null");
  }
  const Scaffold& scaffold = options.scaffold;
  const bool has_functions =
      !scaffold.ready.is_default() || !scaffold.ready_for_local_init.is_default() || !scaffold.local_init.is_default();
  if (options.session_manager != nullptr && has_functions) {
    return absl::InvalidArgumentError(
        "scaffold: has ready, ready_for_local_init or local_init, which belong to the session_manager that is given");
  }
  return CheckNotNegative("recovery.max_attempts", options.recovery.max_attempts);
}

// As in TensorFlow, no error counts as a clean stop.
Coordinator::Options CoordinatorOptions(const MonitoredSessionOptions& options) {
  Coordinator::Options coordinator;
  coordinator.clock = options.session.clock;
  coordinator.clean_stop_codes.clear();
  return coordinator;
}

}  // namespace

StepContext::StepContext(MonitoredSession* session)
    : session_(session), unhooked_(session->held_.session.get(), session->hooked_.get()) {}

absl::StatusOr<StepResult> StepContext::RunWithHooks(const TrainOp& op) { return session_->hooked_->Run(op); }

absl::Status StepContext::RequestStop() {
  session_->stop_requested_ = true;
  return absl::OutOfRangeError("the step function asked for the end");
}

absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredSession::Create(MonitoredSessionOptions options) {
  const Scaffold& scaffold = options.scaffold;
  InitFunction init_fn = scaffold.init_fn.Or(options.session.init_fn).value_or(InitFunction());
  ASSIGN_OR_RETURN(options.session.init_fn,
                   InitFunctionOf(scaffold.init_op, scaffold.init_feed_dict, std::move(init_fn)));
  RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<SessionManager> manager;
  if (options.session_manager == nullptr) {
    SessionManager::Options manager_options = options.scaffold.ManagerOptions();
    manager_options.recovery_wait = options.recovery_wait;
    ASSIGN_OR_RETURN(manager, SessionManager::Create(std::move(manager_options)));
  }
  auto session = absl::WrapUnique(new MonitoredSession(std::move(options), std::move(manager)));
  HookedSession::Options& hooked = session->hooked_options_;
  RETURN_IF_ERROR(BeginHooks(hooked.hooks));
  ASSIGN_OR_RETURN(hooked.initial_states, StatesOf(hooked.hooks));
  RETURN_IF_ERROR(session->CreateSessionWithRetries());
  return session;
}

MonitoredSession::MonitoredSession(MonitoredSessionOptions options, std::unique_ptr<SessionManager> own_manager)
    : options_(std::move(options)),
      own_manager_(std::move(own_manager)),
      manager_(own_manager_ != nullptr ? own_manager_.get() : options_.session_manager),
      recovery_(options_.recovery),
      coordinator_(CoordinatorOptions(options_)) {
  AllowStop(options_.session, options_.stop_grace);
  std::vector<Hook*>& hooks = hooked_options_.hooks;
  hooks = options_.first_hooks;
  for (const auto& hook : options_.own_hooks) hooks.push_back(hook.get());
  hooks.insert(hooks.end(), options_.hooks.begin(), options_.hooks.end());
  hooked_options_.gate_loop = options_.gate_loop;
  hooked_options_.recover = options_.recover;
}

MonitoredSession::~MonitoredSession() { StopThreads().IgnoreError(); }

absl::Status MonitoredSession::StopThreads() {
  coordinator_.RequestStop().IgnoreError();  // No reason, no error.
  Coordinator::JoinOptions join;
  join.grace = options_.stop_grace;
  join.ignore_live_threads = true;
  return coordinator_.Join(join);
}

absl::Status MonitoredSession::DropSession() {
  StopThreads().IgnoreError();  // Their errors are already known.
  hooked_.reset();
  const absl::Status saved = held_.session == nullptr ? absl::OkStatus() : held_.session->Stop();
  held_ = HeldSession();
  return saved;
}

absl::Status MonitoredSession::CreateSession() {
  coordinator_.ClearStop();
  if (options_.session.is_chief) {
    SessionManager::PrepareOptions prepare;
    prepare.initialize = !options_.scaffold.init_op.is_none();
    ASSIGN_OR_RETURN(held_, manager_->PrepareSession(options_.session, prepare));
    if (!held_.listening.empty()) options_.session.listen = held_.listening;
  } else {
    ASSIGN_OR_RETURN(held_, manager_->WaitForSession(options_.session, options_.max_wait));
  }
  HookedSession::Options hooked = hooked_options_;
  hooked.gate = held_.gate;
  ASSIGN_OR_RETURN(hooked_, HookedSession::Open(held_.session.get(), std::move(hooked)));
  return absl::OkStatus();
}

absl::Status MonitoredSession::CreateSessionWithRetries() {
  absl::Status status = CreateSession();
  return status.ok() ? status : Recover(std::move(status));
}

absl::Status MonitoredSession::Recover(absl::Status status) {
  while (options_.recover && RecoveryPolicy::Survives(status)) {
    const absl::Status saved = DropSession();
    status = recovery_.AwaitNext(status, saved, options_.session.clock, options_.session.stop);
    if (!status.ok()) break;
    status = CreateSession();
    if (status.ok()) return status;
  }
  if (hooked_ == nullptr) lost_ = status;
  return status;
}

absl::Status MonitoredSession::CheckUsable() {
  if (closed_) return absl::FailedPreconditionError("Run of a session that is closed");
  if (stop_requested_) return absl::FailedPreconditionError("Run after a stop was requested by the step function");
  if (hooked_ == nullptr) return lost_;
  const absl::Status reported = coordinator_.status();
  return RecoveryPolicy::Survives(reported) ? Recover(reported) : absl::OkStatus();
}

absl::StatusOr<StepResult> MonitoredSession::Run(const TrainOp& op) {
  absl::optional<StepResult> result;
  RETURN_IF_ERROR(RunStep([&](StepContext& context) -> absl::Status {
    ASSIGN_OR_RETURN(result, context.RunWithHooks(op));
    return absl::OkStatus();
  }));
  return *result;
}

absl::Status MonitoredSession::RunStep(const std::function<absl::Status(StepContext&)>& function) {
  RETURN_IF_ERROR(CheckUsable());
  while (true) {
    StepContext context(this);
    absl::Status status = function(context);
    if (status.ok()) {
      recovery_.OnProgress();
      return status;
    }
    // A thread may have seen the cause of the failure first.
    const absl::Status reported = coordinator_.status();
    if (RecoveryPolicy::Survives(reported) && !stop_requested_) status = reported;
    over_ = over_ || absl::IsOutOfRange(status);
    if (!options_.recover || !RecoveryPolicy::Survives(status)) {
      hooked_->SetLoopStatus(status);
      return status;
    }
    RETURN_IF_ERROR(Recover(std::move(status)));
  }
}

bool MonitoredSession::ShouldStop() {
  if (closed_ || stop_requested_ || hooked_ == nullptr) return true;
  // The next Run recovers.
  if (options_.recover && RecoveryPolicy::Survives(coordinator_.status())) return false;
  return coordinator_.ShouldStop() || hooked_->ShouldStop();
}

absl::Status MonitoredSession::Close() {
  if (closed_) return absl::FailedPreconditionError("Close of a session that is closed already");
  closed_ = true;
  const absl::Status threads = RejectOutOfRange(StopThreads());
  if (hooked_ == nullptr) return absl::IsOutOfRange(lost_) ? threads : lost_;
  hooked_->SetLoopStatus(threads);
  const absl::Status told =
      !over_ && told_to_stop() ? absl::CancelledError("the process was told to stop") : absl::OkStatus();
  hooked_->SetLoopStatus(told);
  const absl::Status closed = hooked_->Close();
  if (!threads.ok()) return threads;
  if (!options_.session.is_chief && RecoveryPolicy::Survives(closed)) {
    LOG(WARNING) << "closing the session: " << closed.message();
    return told;
  }
  // A chief's successful Close has ended the run, so OK is the result even if the process was asked to stop.
  return closed.ok() && !options_.session.is_chief ? told : closed;
}

absl::Status WithSession(absl::StatusOr<std::unique_ptr<MonitoredSession>> session,
                         const std::function<absl::Status(MonitoredSession&)>& body) {
  if (absl::IsOutOfRange(session.status())) return absl::OkStatus();
  RETURN_IF_ERROR(session.status());
  const absl::Status status = CatchExceptions([&] { return body(**session); });
  // If the process was asked to stop, Close on a chief reports whether the last step was saved, or even that the run is
  // over.
  const bool stopped = absl::IsCancelled(status) && (*session)->told_to_stop();
  return status.ok() || absl::IsOutOfRange(status) || stopped ? (*session)->Close() : status;
}

}  // namespace lockstep::train

#include "lockstep/train/supervisor/supervisor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/events/event_writer_cache.h"
#include "lockstep/train/events/summary_builder.h"
#include "lockstep/train/session/open_session.h"

namespace lockstep::train {

// A session that remembers the result of its last Run, and may hold the run between two Runs. Must be created and
// started by the thread that runs the body. Owns the session. Has the same thread safety as Session.
class SupervisedSession : public SessionDecorator {
 public:
  explicit SupervisedSession(HeldSession held) : SessionDecorator(held.session.get()), held_(std::move(held)) {
    of_this_thread_ = this;
  }

  // Makes each step wait for a Run. Does nothing on a worker. Must be called before Begin.
  absl::Status HoldBetweenRuns() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (held_.gate == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t step, GlobalStep());
    MutexLock lock(&mutex_);
    held_at_ = step;
    return absl::OkStatus();
  }
  // Lets steps begin once the session is ready.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!held_at()) held_.Release();
  }
  // Called before the calling thread waits. If that thread runs the body, steps no longer wait for a Run.
  void AllowWithoutRuns() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (of_this_thread_ != this) return;
    MutexLock lock(&mutex_);
    if (!held_at_) return;
    held_at_.reset();
    held_.Release();
  }

  absl::StatusOr<StepResult> Run(const TrainOp& op) override ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      // Takes the lock, so that another thread's Run cannot hold the run again after AllowWithoutRuns.
      MutexLock lock(&mutex_);
      if (held_at_) held_.gate->AllowThrough(*held_at_);
    }
    absl::StatusOr<StepResult> result = SessionDecorator::Run(op);
    if (result.ok()) {
      MutexLock lock(&mutex_);
      last_ = *result;
      if (held_at_) held_at_ = result->global_step;
    }
    return result;
  }

  // Returns nullopt before the first Run.
  absl::optional<StepResult> last() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return last_;
  }

 private:
  absl::optional<int64_t> held_at() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return held_at_;
  }

  const HeldSession held_;
  mutable Mutex mutex_;
  absl::optional<StepResult> last_ ABSL_GUARDED_BY(mutex_);
  // The step at which the run waits for the next Run. Absent if it does not wait.
  absl::optional<int64_t> held_at_ ABSL_GUARDED_BY(mutex_);
  // The newest session that this thread created. A session is created by the thread that runs its body.
  static thread_local const SupervisedSession* of_this_thread_;
};

thread_local const SupervisedSession* SupervisedSession::of_this_thread_ = nullptr;

namespace {

constexpr int kLoggedRates = 10;

absl::Duration SavePeriodOf(const SupervisorOptions& options) {
  return train::SavePeriodOf(options.save_model_period, options.session.op);
}

absl::Status CheckSaver(const SupervisorOptions& options) {
  if (!options.saver.is_given()) return absl::OkStatus();
  const Saver* const saver = *options.saver.Or(absl::nullopt);
  if (saver == nullptr) return absl::InvalidArgumentError("saver: is null; kNone says that there is none");
  if (options.session.logdir.empty()) return absl::InvalidArgumentError("saver: is given, but there is no logdir");
  const absl::Status named = saver->CheckBesideRun(options.session.checkpoint_basename);
  if (!named.ok()) return absl::InvalidArgumentError(absl::StrCat("saver: ", named.message()));
  if (SavePeriodOf(options) > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError("saver: is given, but save_model_period is 0, so that it would never save");
}

absl::Status CheckOptions(const SupervisorOptions& options) {
  RETURN_IF_ERROR(CheckSessionOptions(options.session));
  RETURN_IF_ERROR(CheckNotNegative("save_summaries_period", options.save_summaries_period));
  RETURN_IF_ERROR(CheckNotNegative("save_model_period", SavePeriodOf(options)));
  RETURN_IF_ERROR(CheckNotNegative("save_scalars_steps", options.save_scalars_steps));
  RETURN_IF_ERROR(CheckNotNegative("stop_grace", options.stop_grace));
  if (options.session.is_chief) RETURN_IF_ERROR(CheckSaver(options));
  return CheckNotNegative("recovery.max_attempts", options.recovery.max_attempts);
}

// Clears the options that only the chief may have.
void ClearForWorker(SupervisorOptions* options) {
  options->session.port_file.clear();
  options->summary = kNone;
  options->summary_writer = Choice<SummaryWriter>();
  options->save_summaries_period = absl::ZeroDuration();
  options->save_scalars_steps = 0;
  options->save_model_period = absl::ZeroDuration();
}

// If there is no saver, clears the chief's logdir and returns the writer of an event file there, which receives the
// chief's summaries. Returns null if there is a saver or no events are written.
absl::StatusOr<std::shared_ptr<EventWriter>> OpenEventsAlone(SupervisorOptions* options) {
  SessionOptions& session = options->session;
  std::shared_ptr<EventWriter> events;
  if (!options->saver.is_none() || !session.is_chief) return events;
  const std::string own_directory = std::exchange(session.summary_dir, "");
  const std::string logdir = std::exchange(session.logdir, "");
  const std::string& directory = own_directory.empty() ? logdir : own_directory;
  const bool writes = session.write_events && !session.summary_writer && options->summary_writer.is_default();
  if (directory.empty() || !writes) return events;
  ASSIGN_OR_RETURN(events, EventWriterCache::OfProcess()->Get(session.fs, session.clock, directory));
  session.summary_writer = [events](const v1::Summary& summary, int64_t step) {
    v1::Event event;
    event.set_step(step);
    *event.mutable_summary() = summary;
    events->Write(std::move(event));
    return absl::OkStatus();
  };
  return events;
}

// Sets where the chief writes summaries, and which ones it writes in addition to those of the services.
void SetSummaries(SupervisorOptions* options) {
  SessionOptions& session = options->session;
  if (!options->summary_writer.is_default()) {
    session.write_events = false;
    session.summary_writer = options->summary_writer.Or(absl::nullopt).value_or(SummaryWriter());
  }
  session.writes_loss = false;
  config::v1::SummaryConfig* const summary = session.op.spec.mutable_summary();
  summary->set_every_steps(options->save_scalars_steps);
  if (options->summary.is_none() || options->save_summaries_period == absl::ZeroDuration()) {
    summary->clear_gradients_every_steps();
  }
}

SessionManager::Options ManagerOptions(const SupervisorOptions& options) {
  SessionManager::Options manager;
  manager.ready = options.ready.Or(ReadyFunction(UninitializedVariables)).value_or(ReadyFunction());
  manager.ready_for_local_init = options.ready_for_local_init.Or(absl::nullopt).value_or(ReadyFunction());
  manager.local_init = options.local_init.Or(absl::nullopt).value_or(LocalInitFunction());
  manager.local_init_timeout = options.local_init_timeout;
  manager.recovery_wait = options.recovery_wait;
  return manager;
}

Coordinator::Options CoordinatorOptions(const SupervisorOptions& options) {
  Coordinator::Options coordinator;
  coordinator.clock = options.session.clock;
  coordinator.executor = options.executor;
  return coordinator;
}

// Writes the loss of the last Run unless it has already been written.
absl::Status WriteLoss(SupervisedSession* session, int64_t* written) {
  const absl::optional<StepResult> last = session->last();
  if (!last || last->global_step == *written) return absl::OkStatus();
  *written = last->global_step;
  return session->AddOwnSummary(ScalarSummary("loss", last->loss), last->global_step);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Create(SupervisorOptions options) {
  ASSIGN_OR_RETURN(options.session.init_fn,
                   InitFunctionOf(options.init_op, options.init_feed_dict, std::move(options.session.init_fn)));
  RETURN_IF_ERROR(CheckOptions(options));
  if (!options.session.is_chief) ClearForWorker(&options);
  std::unique_ptr<SessionManager> own_manager;
  if (options.session_manager == nullptr) {
    ASSIGN_OR_RETURN(own_manager, SessionManager::Create(ManagerOptions(options)));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<EventWriter> events, OpenEventsAlone(&options));
  SetSummaries(&options);
  return std::unique_ptr<Supervisor>(new Supervisor(std::move(options), std::move(own_manager), std::move(events)));
}

Supervisor::Supervisor(SupervisorOptions options, std::unique_ptr<SessionManager> own_manager,
                       std::shared_ptr<EventWriter> events)
    : options_(std::move(options)),
      events_(std::move(events)),
      own_manager_(std::move(own_manager)),
      manager_(own_manager_ != nullptr ? own_manager_.get() : options_.session_manager),
      recovery_(options_.recovery),
      coordinator_(CoordinatorOptions(options_)) {
  AllowStop(options_.session, options_.stop_grace);
  if (StopSignal* const stop = options_.session.stop) {
    stop_listener_ = stop->Add([this] { coordinator_.RequestStop().IgnoreError(); });
  }
}

Supervisor::~Supervisor() {
  if (options_.session.stop != nullptr) options_.session.stop->Remove(stop_listener_);
}

std::shared_ptr<SupervisedSession> Supervisor::session() const {
  MutexLock lock(&mutex_);
  return session_;
}

void Supervisor::SetSession(std::shared_ptr<SupervisedSession> session) {
  {
    MutexLock lock(&mutex_);
    std::swap(session_, session);
    services_started_ = false;
  }
  const bool ended = session != nullptr;
  session.reset();  // not locked, because the chief may save
  if (ended && events_ != nullptr) events_->WriteSessionLog(v1::SessionLog::STOP, 0);
}

absl::StatusOr<Session*> Supervisor::PrepareOrWaitForSession(const PrepareOptions& prepare) {
  if (!prepare.close_summary_writer && is_chief() && writes_summaries() && !options_.session.summary_writer) {
    return absl::InvalidArgumentError(
        "close_summary_writer: cannot be false: the event file is the chief's, and ends with its session; the next "
        "session has another, and TensorBoard shows both as one");
  }
  if (prepare.wait_for_checkpoint && is_chief() && options_.saver.is_none()) {
    return absl::InvalidArgumentError(
        "wait_for_checkpoint: cannot be true without a saver, as no checkpoint is restored");
  }
  coordinator_.ClearStop();
  SetSession(nullptr);
  SessionOptions options = options_.session;
  const absl::Duration save_period = prepare.start_standard_services ? SavePeriodOf(options_) : absl::ZeroDuration();
  options.op.spec.mutable_checkpoint()->set_every_seconds(absl::ToDoubleSeconds(save_period));
  HeldSession held;
  if (is_chief()) {
    SessionManager::PrepareOptions manager;
    manager.wait_for_checkpoint = prepare.wait_for_checkpoint;
    manager.max_wait = prepare.max_wait;
    manager.initialize = !options_.init_op.is_none();
    if (!listening_.empty()) options.listen = listening_;
    ASSIGN_OR_RETURN(held, manager_->PrepareSession(options, manager));
    listening_ = held.listening;
  } else {
    ASSIGN_OR_RETURN(held, manager_->WaitForSession(options, prepare.max_wait));
  }
  auto session = std::make_shared<SupervisedSession>(std::move(held));
  if (options_.gate_loop) RETURN_IF_ERROR(session->HoldBetweenRuns());
  SetSession(session);
  if (events_ != nullptr) {
    ASSIGN_OR_RETURN(const int64_t step, session->GlobalStep());
    events_->WriteSessionLog(v1::SessionLog::START, step);
  }
  {
    MutexLock lock(&mutex_);
    chief_saves_ = prepare.start_standard_services;
  }
  if (is_chief() && prepare.start_standard_services) RETURN_IF_ERROR(StartStandardServices());
  session->Begin();
  return session.get();
}

absl::Status Supervisor::StartStandardServices() {
  if (!is_chief()) return absl::FailedPreconditionError("the standard services are the chief's; this is a worker");
  std::shared_ptr<SupervisedSession> session;
  bool chief_saves = false;
  {
    MutexLock lock(&mutex_);
    if (session_ == nullptr) return absl::FailedPreconditionError("there is no session to serve; prepare one first");
    if (services_started_) return absl::FailedPreconditionError("the standard services run already");
    services_started_ = true;
    session = session_;
    chief_saves = chief_saves_;
  }
  const bool saves = !options_.session.logdir.empty();
  if (!saves && events_ == nullptr && options_.session.summary_dir.empty()) {
    LOG(WARNING) << "without a logdir there are neither checkpoints nor summaries";
    return absl::OkStatus();
  }
  if (writes_summaries() && options_.save_summaries_period > absl::ZeroDuration()) {
    RETURN_IF_ERROR(StartSummaries(session));
    RETURN_IF_ERROR(StartStepCounter(session));
  }
  RETURN_IF_ERROR(StartSaver(session));
  return chief_saves || !saves ? absl::OkStatus() : StartCheckpoints(session);
}

absl::Status Supervisor::StartSummaries(const std::shared_ptr<SupervisedSession>& session) {
  if (options_.summary.is_none()) return absl::OkStatus();
  Coordinator::Loop loop;
  loop.period = options_.save_summaries_period;
  if (options_.summary.is_default()) {
    loop.run = [session, written = std::make_shared<int64_t>(-1)] { return WriteLoss(session.get(), written.get()); };
  } else {
    loop.run = [session, make = *options_.summary.Or(absl::nullopt)]() -> absl::Status {
      ASSIGN_OR_RETURN(const int64_t step, session->GlobalStep());
      ASSIGN_OR_RETURN(const v1::Summary summary, make(*session));
      return session->AddOwnSummary(summary, step);
    };
  }
  return coordinator_.StartLoop("summaries", std::move(loop));
}

absl::Status Supervisor::StartStepCounter(const std::shared_ptr<SupervisedSession>& session) {
  struct Count {
    absl::Time time;
    int64_t step = 0;
    int logged = 0;
  };
  auto count = std::make_shared<Count>();
  Clock* const clock = options_.session.clock;
  Coordinator::Loop loop;
  loop.period = options_.save_summaries_period;
  loop.start = [session, count, clock]() -> absl::Status {
    ASSIGN_OR_RETURN(count->step, session->GlobalStep());
    count->time = clock->Now();
    return absl::OkStatus();
  };
  loop.run = [session, count, clock]() -> absl::Status {
    ASSIGN_OR_RETURN(const int64_t step, session->GlobalStep());
    const absl::Time now = clock->Now();
    const double seconds = absl::ToDoubleSeconds(now - count->time);
    const double rate = seconds > 0 ? static_cast<double>(step - count->step) / seconds : 0;
    count->time = now;
    count->step = step;
    LOG_IF(INFO, count->logged++ < kLoggedRates) << "global_step/sec: " << rate;
    return session->AddOwnSummary(ScalarSummary("global_step/sec", rate), step);
  };
  return coordinator_.StartLoop("step-counter", std::move(loop));
}

absl::Status Supervisor::StartCheckpoints(const std::shared_ptr<SupervisedSession>& session) {
  Coordinator::Loop loop;
  loop.period = SavePeriodOf(options_);
  if (loop.period <= absl::ZeroDuration()) return absl::OkStatus();
  loop.run = [session] { return session->Save().status(); };
  return coordinator_.StartLoop("checkpoints", std::move(loop));
}

absl::Status Supervisor::StartSaver(const std::shared_ptr<SupervisedSession>& session) {
  Coordinator::Loop loop;
  loop.period = SavePeriodOf(options_);
  if (!options_.saver.is_given() || loop.period <= absl::ZeroDuration()) return absl::OkStatus();
  Saver* const saver = *options_.saver.Or(absl::nullopt);
  loop.run = [session, saver, path = JoinPath(options_.session.logdir, saver->options().basename)]() -> absl::Status {
    ASSIGN_OR_RETURN(const ReadResult read, session->Read({}));
    return saver->Save(path, read.global_step, read.values).status();
  };
  return coordinator_.StartLoop("saver", std::move(loop));
}

absl::Status Supervisor::Stop(bool ignore_live_threads, std::vector<std::function<void()>> joins) {
  coordinator_.RequestStop().IgnoreError();  // Without a reason, it returns no error.
  for (size_t i = 0; i < joins.size(); ++i) {
    coordinator_.StartThread(absl::StrCat("joined-", i), [join = std::move(joins[i])] {
      join();
      return absl::OkStatus();
    });
  }
  Coordinator::JoinOptions join;
  join.grace = options_.stop_grace;
  join.ignore_live_threads = ignore_live_threads;
  absl::Status status = coordinator_.Join(join);
  // Logs now, because the destructor waits for the named threads, perhaps until the process is killed.
  LOG_IF(ERROR, absl::IsDeadlineExceeded(status)) << status.message();
  return status;
}

absl::Status Supervisor::CloseSession() {
  const std::shared_ptr<SupervisedSession> open = session();
  if (open == nullptr) return absl::FailedPreconditionError("there is no session to close");
  const absl::Status failed = coordinator_.status();
  const absl::Status closed = failed.ok() ? open->Close() : open->Stop();
  LOG_IF(ERROR, !failed.ok() && !closed.ok()) << "stopping the session: " << closed.message();
  SetSession(nullptr);
  return failed.ok() ? closed : failed;
}

absl::Status Supervisor::RunOnce(const std::function<absl::Status(Session&)>& body, const PrepareOptions& prepare,
                                 absl::Status* saved) {
  const absl::StatusOr<Session*> prepared = PrepareOrWaitForSession(prepare);
  absl::Status status = prepared.status();
  if (status.ok()) status = CatchExceptions([&] { return body(**prepared); });
  // An error reported after Stop would be lost.
  coordinator_.RequestStop(status).IgnoreError();
  const absl::Status stopped = Stop(options_.ignore_live_threads);
  const bool told_to_stop = options_.session.stop != nullptr && options_.session.stop->requested();
  const std::shared_ptr<SupervisedSession> open = session();
  if (open != nullptr && open->last()) recovery_.OnProgress();
  if (open == nullptr && stopped.ok()) {
    // If a stop was requested earlier, the coordinator treats this error as a consequence of the stop, but the run has
    // not ended well.
    return absl::IsOutOfRange(prepared.status()) ? absl::OkStatus() : prepared.status();
  }
  if (!stopped.ok()) {
    // If the process had to stop, Close reports whether the chief's last step was saved, or even that the run is
    // over.
    const bool tells = absl::IsCancelled(stopped) && told_to_stop && is_chief() && open != nullptr;
    const absl::Status closed = tells ? open->Close() : stopped;
    if (!tells && open != nullptr) *saved = open->Stop();
    SetSession(nullptr);
    return closed;
  }
  RETURN_IF_ERROR(CloseSession());
  // A chief that has closed successfully has ended the run, whatever requested the end. A worker has only left it.
  return told_to_stop && !is_chief() ? absl::CancelledError("the process was told to stop") : absl::OkStatus();
}

absl::Status Supervisor::ManagedSession(const std::function<absl::Status(Session&)>& body,
                                        const PrepareOptions& prepare) {
  while (true) {
    absl::Status saved;
    const absl::Status status = RunOnce(body, prepare, &saved);
    if (!prepare.recover || !RecoveryPolicy::Survives(status)) return status;
    RETURN_IF_ERROR(recovery_.AwaitNext(status, saved, options_.session.clock, options_.session.stop));
  }
}

void Supervisor::WaitForStop() {
  if (const std::shared_ptr<SupervisedSession> open = session()) open->AllowWithoutRuns();
  coordinator_.WaitForStop();
}

absl::Status Supervisor::StopOnError(const std::function<absl::Status()>& function) {
  const absl::Status status = CatchExceptions(function);
  if (!status.ok()) coordinator_.RequestStop(status).IgnoreError();  // The error is returned.
  return status;
}

absl::Status Supervisor::Loop(absl::Duration interval, std::function<absl::Status()> function) {
  RETURN_IF_ERROR(CheckNotNegative("interval", interval));
  if (!function) return absl::InvalidArgumentError("function: is null, there is nothing to call");
  Coordinator::Loop loop;
  loop.period = interval;
  loop.run = std::move(function);
  return coordinator_.StartLoop("loop", std::move(loop));
}

absl::Status Supervisor::SummaryComputed(const v1::Summary& summary, absl::optional<int64_t> global_step) {
  const std::shared_ptr<SupervisedSession> open = session();
  if (open == nullptr) return absl::FailedPreconditionError("there is no session; prepare one first");
  if (is_chief() && !writes_summaries()) {
    return absl::FailedPreconditionError(
        "there is no summary writer: the logdir is empty, summary_writer is None, or write_events is false");
  }
  // A worker's session knows its step without asking the chief.
  if (!global_step && is_chief()) {
    ASSIGN_OR_RETURN(global_step, open->GlobalStep());
  }
  return open->AddSummary(summary, global_step);
}

std::string Supervisor::save_path() const {
  const std::string& logdir = options_.session.logdir;
  return logdir.empty() ? "" : JoinPath(logdir, options_.session.checkpoint_basename);
}

SummaryWriter Supervisor::summary_writer() {
  if (options_.session.summary_writer) return options_.session.summary_writer;
  if (is_chief() && !writes_summaries()) return nullptr;
  return [this](const v1::Summary& summary, int64_t step) { return SummaryComputed(summary, step); };
}

}  // namespace lockstep::train

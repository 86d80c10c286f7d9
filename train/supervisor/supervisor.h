#ifndef LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISOR_H_
#define LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISOR_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/summary/event_writer.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/saver/saver.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/init/init_op.h"
#include "lockstep/train/session/recovery_policy.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/supervisor/coordinator.h"
#include "lockstep/train/supervisor/session_manager.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep::train {

class SupervisedSession;

// What the summary service writes, with the global step of the moment.
using SummaryFunction = std::function<absl::StatusOr<v1::Summary>(Session&)>;

struct SupervisorOptions {
  // What this process is. On a worker logdir, the periods, `summary`, `summary_writer` and `write_events` count for
  // nothing. Its summary_writer, writes_loss, summary.every_steps and, if a period is given, checkpoint.every_seconds
  // are set by what follows.
  SessionOptions session;

  // Default: the variables have values. None: no check.
  Choice<ReadyFunction> ready;
  // Default and none: no check. Only with a local_init.
  Choice<ReadyFunction> ready_for_local_init;
  // Default and none: there is no local state.
  Choice<LocalInitFunction> local_init;
  // SessionManager::Options. Only with a local_init.
  absl::Duration local_init_timeout = absl::InfiniteDuration();
  // Default: from the seed, or a warm start. None: only a checkpoint or session.init_fn. Given: its values, then those
  // of session.init_fn.
  Choice<InitOp> init_op;
  // The inputs of init_op.
  std::vector<NamedTensor> init_feed_dict;
  // Default: the loss of the last Run, and its step. None: no summaries.
  Choice<SummaryFunction> summary;
  // 0: neither summaries, gradients' included, nor the rate of steps.
  absl::Duration save_summaries_period = absl::Seconds(120);
  // The chief's scalars, every so many steps and at the end: learning_rate, global_norm/gradient_norm, update_ratio and
  // examples/sec. 0: never.
  int64_t save_scalars_steps = 0;
  // Default: the chief's event file. None: no events. Given: SessionOptions::summary_writer.
  Choice<SummaryWriter> summary_writer;
  // Default: the chief's checkpoints. None: the logdir is for events alone, a run is neither restored nor saved. Given:
  // saves next to the chief's checkpoints, with save_model_period and under names of its own; not to be used elsewhere
  // while the services run. Outlives this.
  Choice<Saver*> saver;
  // Default: checkpoint.every_seconds of the configuration, 600 s unless it is set. None and 0: the chief saves only
  // when a run begins and when it ends or stops, and every checkpoint.every_steps of the configuration.
  Choice<absl::Duration> save_model_period;
  // The chief: no step begins before the body's next Run, so that a body that leaves its loop after step s ends the run
  // at s, and what it reads and sets between two Runs is of one step. A body that calls WaitForStop lets the run
  // continue from then on. Otherwise steps do not wait for the body, and the run ends at the step in progress.
  bool gate_loop = false;
  absl::Duration recovery_wait = absl::Seconds(30);
  // How long threads may continue after a stop was requested.
  absl::Duration stop_grace = absl::Seconds(120);
  // Opens the sessions in place of one made of ready, ready_for_local_init, local_init, local_init_timeout and
  // recovery_wait, which count for nothing then. Null: none. Outlives this.
  SessionManager* session_manager = nullptr;
  RecoveryOptions recovery;
  SessionOpener open = OpenHeldSession;
  Executor* executor = Executor::Threads();
};

// Runs a training program: opens its session, restored or initialized, starts what saves and writes summaries, stops
// all threads together, and returns the first error of any of them; an exception is one. OutOfRange of the body or of a
// thread is a clean end. SessionOptions::stop is a clean stop, too. Life: Create; ManagedSession, or
// PrepareOrWaitForSession, Stop and CloseSession, as often as needed. Owns the session and the threads. These four are
// for one thread, the rest for any.
class Supervisor {
 public:
  struct PrepareOptions {
    bool start_standard_services = true;
    // The chief: SessionManager::PrepareOptions. InvalidArgument without a saver.
    bool wait_for_checkpoint = false;
    // For a checkpoint, and on a worker for its chief.
    absl::Duration max_wait = absl::Seconds(7200);
    // ManagedSession, after Aborted and Unavailable: opens another session, the chief's from its last step, and calls
    // the body again, as SupervisorOptions::recovery has it.
    bool recover = false;
    // ManagedSession: threads that still run after `stop_grace` are logged, and no error.
    bool ignore_live_threads = false;
    // False is InvalidArgument where events are written: their file is the chief's, and ends with its session.
    bool close_summary_writer = true;
  };

  // InvalidArgument names the option that is wrong.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Create(SupervisorOptions options);
  // A session that is open is stopped: the chief saves, and its workers wait for a successor.
  ~Supervisor();

  // Opens the session, calls `body`, stops all threads and closes the session: the chief ends the run, if it is not
  // over. After an error the session is stopped instead. Returns the first error of session, body and threads, also
  // one that came after a clean stop; Cancelled when the process was told to stop before the run was over.
  absl::Status ManagedSession(const std::function<absl::Status(Session&)>& body, const PrepareOptions& prepare);
  absl::Status ManagedSession(const std::function<absl::Status(Session&)>& body) {
    return ManagedSession(body, PrepareOptions());
  }

  // Forgets an earlier stop, opens the session and starts the services. The session is valid until CloseSession, the
  // next call, or the end of this. Errors: those of the session manager.
  absl::StatusOr<Session*> PrepareOrWaitForSession(const PrepareOptions& prepare);
  absl::StatusOr<Session*> PrepareOrWaitForSession() { return PrepareOrWaitForSession(PrepareOptions()); }
  // For a session that was prepared without: summaries, the rate of steps, checkpoints, each at once and then with its
  // period. Without a logdir there are none. FailedPrecondition on a worker, without a session, and when they run.
  absl::Status StartStandardServices();
  // Asks all threads to stop, and waits for them. Returns the first error; DeadlineExceeded names threads that still
  // run after `stop_grace`, unless `ignore_live_threads`. `joins` wait for threads that are not the coordinator's, such
  // as [&] { reader.join(); }. Each is called in a thread of the coordinator; it must be valid until it has returned.
  absl::Status Stop(bool ignore_live_threads = false, std::vector<std::function<void()>> joins = {});
  // Closes the session and forgets it. After an error of the coordinator, which it returns, stops the session instead.
  // FailedPrecondition without a session.
  absl::Status CloseSession();

  // Calls `function` in a thread of its own, at once and then at start + k * interval (back to back with an interval of
  // 0), until a stop is requested. Its error stops everything.
  absl::Status Loop(absl::Duration interval, std::function<absl::Status()> function);

  // Coordinator::RequestStop.
  absl::Status RequestStop(absl::Status reason = absl::OkStatus()) {
    return coordinator_.RequestStop(std::move(reason));
  }
  bool ShouldStop() const { return coordinator_.ShouldStop(); }
  // If the body calls it before any Run, the run continues without one.
  void WaitForStop();
  // Calls `function` and reports its error, which it returns: for threads that are not the coordinator's.
  absl::Status StopOnError(const std::function<absl::Status()>& function);

  // Writes a summary of the program's own; the step is the session's unless it is given. Errors: FailedPrecondition
  // without a session, and on a chief without a logdir or events; those of Session::AddSummary.
  absl::Status SummaryComputed(const v1::Summary& summary, absl::optional<int64_t> global_step = absl::nullopt);

  // Takes the summaries: the function that was given, or SummaryComputed. Null on a chief that writes no events. Valid
  // as long as this.
  SummaryWriter summary_writer();

  Coordinator* coordinator() { return &coordinator_; }
  SessionManager* session_manager() const { return manager_; }
  // The prefix of the run's checkpoints, which end in "-" and the global step; "" without a logdir.
  std::string save_path() const;
  bool is_chief() const { return options_.session.is_chief; }
  const SupervisorOptions& options() const { return options_; }

 private:
  Supervisor(SupervisorOptions options, std::unique_ptr<SessionManager> own_manager,
             std::shared_ptr<EventWriter> events);

  // Runs one session. Where the run is to continue in another one, `saved` is the result of Session::Stop.
  absl::Status RunOnce(const std::function<absl::Status(Session&)>& body, const PrepareOptions& prepare,
                       absl::Status* saved);
  absl::Status StartSummaries(const std::shared_ptr<SupervisedSession>& session);
  absl::Status StartStepCounter(const std::shared_ptr<SupervisedSession>& session);
  absl::Status StartCheckpoints(const std::shared_ptr<SupervisedSession>& session);
  absl::Status StartSaver(const std::shared_ptr<SupervisedSession>& session);
  bool writes_summaries() const { return WritesSummaries(options_.session); }
  std::shared_ptr<SupervisedSession> session() const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetSession(std::shared_ptr<SupervisedSession> session) ABSL_LOCKS_EXCLUDED(mutex_);

  const SupervisorOptions options_;
  // The event file of a run without checkpoints, which the chief does not write; else null.
  const std::shared_ptr<EventWriter> events_;
  int64_t stop_listener_ = StopSignal::kNone;
  // Null when the options have one.
  const std::unique_ptr<SessionManager> own_manager_;
  SessionManager* const manager_;
  RecoveryPolicy recovery_;
  // HeldSession::listening of the first session.
  std::string listening_;
  mutable Mutex mutex_;
  // Threads that do not end in time keep it alive.
  std::shared_ptr<SupervisedSession> session_ ABSL_GUARDED_BY(mutex_);
  bool services_started_ ABSL_GUARDED_BY(mutex_) = false;
  // The chief's timer saves, not a thread of ours.
  bool chief_saves_ ABSL_GUARDED_BY(mutex_) = false;
  // Ends first: its threads use the rest.
  Coordinator coordinator_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISOR_H_

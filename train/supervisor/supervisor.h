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

// Returns the summary that the summary service writes at the current global step.
using SummaryFunction = std::function<absl::StatusOr<v1::Summary>(Session&)>;

// Options for the waits, the threads and the recovery of a Supervisor. SupervisorOptions and slim::TrainOptions derive
// from this struct and pass it on as a whole.
struct SupervisionOptions {
  // See SessionManager::Options.
  absl::Duration recovery_wait = absl::Seconds(30);
  // The maximum time that threads may continue after a stop was requested.
  absl::Duration stop_grace = absl::Seconds(120);
  // If true, ManagedSession only logs threads that outlast `stop_grace`, and returns no error for them.
  bool ignore_live_threads = false;
  // Limits how often another session is opened after Aborted and Unavailable.
  RecoveryOptions recovery;
};

struct SupervisorOptions : SupervisionOptions {
  // The options for this process's session. A worker ignores the logdir, the periods, `summary`, `summary_writer` and
  // `write_events`. The options below override its summary_writer, writes_loss, summary.every_steps and, if a period is
  // given, checkpoint.every_seconds.
  SessionOptions session;

  // Default: checks that the variables have values. None: no check.
  Choice<ReadyFunction> ready;
  // Default and None: no check. Requires a local_init.
  Choice<ReadyFunction> ready_for_local_init;
  // Default and None: there is no local state.
  Choice<LocalInitFunction> local_init;
  // SessionManager::Options::local_init_timeout. Requires a local_init.
  absl::Duration local_init_timeout = absl::InfiniteDuration();
  // Default: initializes from the seed or a warm start. None: only a checkpoint or session.init_fn initializes. If
  // given, its values are set first, and then those of session.init_fn.
  Choice<InitOp> init_op;
  // The inputs of init_op.
  std::vector<NamedTensor> init_feed_dict;
  // Default: the loss of the last Run, at its step. None: no summaries.
  Choice<SummaryFunction> summary;
  // If 0, writes neither summaries (including those of gradients) nor the step rate.
  absl::Duration save_summaries_period = absl::Seconds(120);
  // The number of steps between the chief's scalars learning_rate, global_norm/gradient_norm, update_ratio and
  // examples/sec, which are also written at the end. If 0, they are never written.
  int64_t save_scalars_steps = 0;
  // Default: the chief's event file. None: no events. If given, see SessionOptions::summary_writer.
  Choice<SummaryWriter> summary_writer;
  // Default: only the chief's checkpoints. None: the logdir is only for events, and the run is neither restored nor
  // saved. If given, this saver also saves, under its own names, every save_model_period, which must be above 0. The
  // saver must outlive the supervisor and must not be used elsewhere while the services run.
  Choice<Saver*> saver;
  // Default: checkpoint.every_seconds of the configuration, or 600 s if that is not set. None and 0: the chief saves
  // only when a run begins and when it ends or stops, and every checkpoint.every_steps of the configuration.
  Choice<absl::Duration> save_model_period;
  // If true, no step of the chief begins before the body's next Run. A body that leaves its loop after step s then ends
  // the run at s, and everything that it reads and sets between two Runs belongs to one step. If the chief is killed at
  // s before the end is recorded, the body may begin at s after the restart. Once a body calls WaitForStop, the run
  // continues without waiting for it. If false, steps do not wait for the body, and the run ends at the step in
  // progress.
  bool gate_loop = false;
  // Opens the sessions instead of a manager made from ready, ready_for_local_init, local_init, local_init_timeout and
  // recovery_wait, which are then ignored. May be null. Must outlive the supervisor.
  SessionManager* session_manager = nullptr;
  Executor* executor = Executor::Threads();
};

// Runs a training program. Opens its session, restored or initialized, starts the services that save and write
// summaries, stops all threads together, and returns their first error. An exception counts as an error. OutOfRange
// from the body or a thread is a clean end, and SessionOptions::stop is a clean stop. Life cycle: Create; then
// ManagedSession, or PrepareOrWaitForSession, Stop and CloseSession, any number of times. Owns the session and the
// threads. Only one thread may call these four methods; any thread may call the others.
class Supervisor {
 public:
  struct PrepareOptions {
    bool start_standard_services = true;
    // See SessionManager::PrepareOptions. Only for the chief. If `saver` is None, preparing a session returns
    // InvalidArgument.
    bool wait_for_checkpoint = false;
    // Maximum time to wait for a checkpoint and, on a worker, for its chief.
    absl::Duration max_wait = absl::Seconds(7200);
    // If true, ManagedSession opens another session after Aborted and Unavailable, and calls the body again, within the
    // limits of SupervisorOptions::recovery. A chief's next session continues from its last step.
    bool recover = false;
    // Must be true if the chief writes an event file, which is closed with the chief's session. Otherwise, preparing a
    // session returns InvalidArgument.
    bool close_summary_writer = true;
  };

  // Creates a supervisor. Returns InvalidArgument naming the wrong option.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Create(SupervisorOptions options);
  // Stops an open session. The chief then saves, and its workers wait for a successor.
  ~Supervisor();

  // Opens the session, calls `body`, stops all threads and closes the session. A chief that closes its session ends the
  // run if it is not over. After an error, stops the session instead. Returns the first error of the session, the body
  // and the threads, even if it came after a clean stop. Returns Cancelled if the process was stopped before the run
  // was over.
  absl::Status ManagedSession(const std::function<absl::Status(Session&)>& body, const PrepareOptions& prepare);
  absl::Status ManagedSession(const std::function<absl::Status(Session&)>& body) {
    return ManagedSession(body, PrepareOptions());
  }

  // Clears an earlier stop request, opens the session and starts the services. The session is valid until CloseSession,
  // the next call, or the supervisor's destruction. Errors: those of the session manager.
  absl::StatusOr<Session*> PrepareOrWaitForSession(const PrepareOptions& prepare);
  absl::StatusOr<Session*> PrepareOrWaitForSession() { return PrepareOrWaitForSession(PrepareOptions()); }
  // Starts the services of a session that was prepared without them: summaries, step rate and checkpoints. Each runs
  // immediately and then periodically. Starts none without a logdir or summary_dir. Returns FailedPrecondition on a
  // worker, without a session, and if the services are already running.
  absl::Status StartStandardServices();
  // Asks all threads to stop, and waits for them. Returns their first error, or DeadlineExceeded naming the threads
  // that outlast `stop_grace`, unless `ignore_live_threads` is set. The functions in `joins` wait for threads that do
  // not belong to the coordinator, such as [&] { reader.join(); }. Each is called in a thread of the coordinator and
  // must remain valid until it has returned.
  absl::Status Stop(bool ignore_live_threads = false, std::vector<std::function<void()>> joins = {});
  // Closes the session and releases it. If the coordinator has an error, stops the session instead and returns the
  // error. Returns FailedPrecondition if there is no session.
  absl::Status CloseSession();

  // Calls `function` in a separate thread, immediately and then at start + k * interval (back to back if the interval
  // is 0), until a stop is requested. An error that it returns stops everything.
  absl::Status Loop(absl::Duration interval, std::function<absl::Status()> function);

  // Calls Coordinator::RequestStop.
  absl::Status RequestStop(absl::Status reason = absl::OkStatus()) {
    return coordinator_.RequestStop(std::move(reason));
  }
  bool ShouldStop() const { return coordinator_.ShouldStop(); }
  // Blocks until a stop is requested. If the body calls this, steps no longer wait for a Run, even before the first
  // one.
  void WaitForStop();
  // Calls `function`, reports its error to the coordinator and returns the error. Intended for threads that do not
  // belong to the coordinator.
  absl::Status StopOnError(const std::function<absl::Status()>& function);

  // Writes the program's own summary. If `global_step` is absent, uses the session's step. Errors: FailedPrecondition
  // without a session, and on a chief without a logdir or events; those of Session::AddSummary.
  absl::Status SummaryComputed(const v1::Summary& summary, absl::optional<int64_t> global_step = absl::nullopt);

  // Returns the function that writes summaries: the one in the options, or SummaryComputed. Returns null on a chief
  // that writes no events. The function is valid as long as the supervisor exists.
  SummaryWriter summary_writer();

  Coordinator* coordinator() { return &coordinator_; }
  SessionManager* session_manager() const { return manager_; }
  // Returns the prefix of the run's checkpoints without "-" and the global step. Empty without a logdir.
  std::string save_path() const;
  bool is_chief() const { return options_.session.is_chief; }
  const SupervisorOptions& options() const { return options_; }

 private:
  Supervisor(SupervisorOptions options, std::unique_ptr<SessionManager> own_manager,
             std::shared_ptr<EventWriter> events);

  // Runs one session. If the run may continue in another session, sets `saved` to the result of Session::Stop.
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
  // Writer of the event file of a run without checkpoints, which the supervisor writes instead of the chief. Null for
  // other runs.
  const std::shared_ptr<EventWriter> events_;
  int64_t stop_listener_ = StopSignal::kNone;
  // Null if the options contain a session manager.
  const std::unique_ptr<SessionManager> own_manager_;
  SessionManager* const manager_;
  RecoveryPolicy recovery_;
  // HeldSession::listening of the first session.
  std::string listening_;
  mutable Mutex mutex_;
  // Shared with service threads, which may not end in time.
  std::shared_ptr<SupervisedSession> session_ ABSL_GUARDED_BY(mutex_);
  bool services_started_ ABSL_GUARDED_BY(mutex_) = false;
  // True if the chief saves periodically by itself, so that no thread of the supervisor has to.
  bool chief_saves_ ABSL_GUARDED_BY(mutex_) = false;
  // Destroyed first, because its threads use the rest.
  Coordinator coordinator_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISOR_H_

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

struct SupervisorOptions {
  // The options of this process's session. A worker ignores the logdir, the periods, `summary`, `summary_writer` and
  // `write_events`. The options below set its summary_writer, writes_loss, summary.every_steps and, if a period is
  // given, checkpoint.every_seconds.
  SessionOptions session;

  // Default: the variables have values. None: no check.
  Choice<ReadyFunction> ready;
  // Default and none: no check. Requires a local_init.
  Choice<ReadyFunction> ready_for_local_init;
  // Default and none: there is no local state.
  Choice<LocalInitFunction> local_init;
  // SessionManager::Options::local_init_timeout. Requires a local_init.
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
  // The number of steps between the chief's scalars, which are also written at the end: learning_rate,
  // global_norm/gradient_norm, update_ratio and examples/sec. If 0, never.
  int64_t save_scalars_steps = 0;
  // Default: the chief's event file. None: no events. Given: SessionOptions::summary_writer.
  Choice<SummaryWriter> summary_writer;
  // Default: the chief's checkpoints. None: the logdir is for events alone, and a run is neither restored nor saved.
  // Given: saves next to the chief's checkpoints, with save_model_period, which must be above 0, and under its own
  // names. It must outlive this and must not be used elsewhere while the services run.
  Choice<Saver*> saver;
  // Default: checkpoint.every_seconds of the configuration, 600 s unless it is set. None and 0: the chief saves only
  // when a run begins and when it ends or stops, and every checkpoint.every_steps of the configuration.
  Choice<absl::Duration> save_model_period;
  // If true, no step of the chief begins before the body's next Run. A body that leaves its loop after step s then ends
  // the run at s, and all that it reads and sets between two Runs is of one step. A chief that is killed at s, before
  // the end is recorded, may begin the body of its next life at s. Once a body calls WaitForStop, the run continues
  // without it. If false, steps do not wait for the body, and the run ends at the step in progress.
  bool gate_loop = false;
  absl::Duration recovery_wait = absl::Seconds(30);
  // The longest time that threads may continue after a stop was requested.
  absl::Duration stop_grace = absl::Seconds(120);
  // Opens the sessions in place of a manager made of ready, ready_for_local_init, local_init, local_init_timeout and
  // recovery_wait, which are then ignored. May be null. Must outlive this.
  SessionManager* session_manager = nullptr;
  RecoveryOptions recovery;
  SessionOpener open = OpenHeldSession;
  Executor* executor = Executor::Threads();
};

// Runs a training program: opens its session, restored or initialized, starts the services that save and write
// summaries, stops all threads together, and returns their first error. An exception is an error. OutOfRange of the
// body or of a thread is a clean end, and SessionOptions::stop is a clean stop. Life: Create; ManagedSession, or
// PrepareOrWaitForSession, Stop and CloseSession, as often as needed. Owns the session and the threads. One thread may
// call these four, any thread the rest.
class Supervisor {
 public:
  struct PrepareOptions {
    bool start_standard_services = true;
    // SessionManager::PrepareOptions of the chief. InvalidArgument without a saver.
    bool wait_for_checkpoint = false;
    // The longest wait for a checkpoint, and on a worker for its chief.
    absl::Duration max_wait = absl::Seconds(7200);
    // If true, ManagedSession opens another session after Aborted and Unavailable, on the chief from its last step, and
    // calls the body again, as SupervisorOptions::recovery has it.
    bool recover = false;
    // If true, ManagedSession logs threads that still run after `stop_grace`, but returns no error for them.
    bool ignore_live_threads = false;
    // InvalidArgument if it is false and events are written: their file is the chief's and ends with its session.
    bool close_summary_writer = true;
  };

  // Creates a supervisor. InvalidArgument names the wrong option.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Create(SupervisorOptions options);
  // Stops an open session: the chief saves, and its workers wait for a successor.
  ~Supervisor();

  // Opens the session, calls `body`, stops all threads and closes the session: the chief ends the run if it is not
  // over. After an error, it stops the session instead. Returns the first error of session, body and threads, even if
  // it came after a clean stop; Cancelled if the process was stopped before the run was over.
  absl::Status ManagedSession(const std::function<absl::Status(Session&)>& body, const PrepareOptions& prepare);
  absl::Status ManagedSession(const std::function<absl::Status(Session&)>& body) {
    return ManagedSession(body, PrepareOptions());
  }

  // Forgets an earlier stop, opens the session and starts the services. The session is valid until CloseSession, the
  // next call, or the destruction of this. Errors: those of the session manager.
  absl::StatusOr<Session*> PrepareOrWaitForSession(const PrepareOptions& prepare);
  absl::StatusOr<Session*> PrepareOrWaitForSession() { return PrepareOrWaitForSession(PrepareOptions()); }
  // Starts the services of a session that was prepared without them: summaries, the rate of steps, checkpoints, each
  // immediately and then with its period. Starts none without a logdir. FailedPrecondition on a worker, without a
  // session, and if they already run.
  absl::Status StartStandardServices();
  // Asks all threads to stop, and waits for them. Returns the first error; DeadlineExceeded names threads that still
  // run after `stop_grace`, unless `ignore_live_threads`. `joins` wait for threads that are not the coordinator's, such
  // as [&] { reader.join(); }. Each is called in a thread of the coordinator and must be valid until it has returned.
  absl::Status Stop(bool ignore_live_threads = false, std::vector<std::function<void()>> joins = {});
  // Closes the session and releases it. If the coordinator has an error, stops the session instead and returns the
  // error. FailedPrecondition without a session.
  absl::Status CloseSession();

  // Calls `function` in its own thread, immediately and then at start + k * interval (back to back with an interval of
  // 0), until a stop is requested. An error of it stops everything.
  absl::Status Loop(absl::Duration interval, std::function<absl::Status()> function);

  // Calls Coordinator::RequestStop.
  absl::Status RequestStop(absl::Status reason = absl::OkStatus()) {
    return coordinator_.RequestStop(std::move(reason));
  }
  bool ShouldStop() const { return coordinator_.ShouldStop(); }
  // Blocks until a stop is requested. If the body calls it, steps no longer wait for a Run, even before the first one.
  void WaitForStop();
  // Calls `function`, reports its error to the coordinator and returns it. Intended for threads that are not the
  // coordinator's.
  absl::Status StopOnError(const std::function<absl::Status()>& function);

  // Writes the program's own summary. If `global_step` is absent, it is the session's. Errors: FailedPrecondition
  // without a session, and on a chief without a logdir or events; those of Session::AddSummary.
  absl::Status SummaryComputed(const v1::Summary& summary, absl::optional<int64_t> global_step = absl::nullopt);

  // Returns the function that takes the summaries: the one in the options, or SummaryComputed. Null on a chief that
  // writes no events. Valid as long as this.
  SummaryWriter summary_writer();

  Coordinator* coordinator() { return &coordinator_; }
  SessionManager* session_manager() const { return manager_; }
  // Returns the prefix of the run's checkpoints, which end in "-" and the global step. Empty without a logdir.
  std::string save_path() const;
  bool is_chief() const { return options_.session.is_chief; }
  const SupervisorOptions& options() const { return options_; }

 private:
  Supervisor(SupervisorOptions options, std::unique_ptr<SessionManager> own_manager,
             std::shared_ptr<EventWriter> events);

  // Runs one session. If the run should continue in another one, sets `saved` to the result of Session::Stop.
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
  // The event file of a run without checkpoints, which the chief does not write. Otherwise null.
  const std::shared_ptr<EventWriter> events_;
  int64_t stop_listener_ = StopSignal::kNone;
  // Null if the options have one.
  const std::unique_ptr<SessionManager> own_manager_;
  SessionManager* const manager_;
  RecoveryPolicy recovery_;
  // HeldSession::listening of the first session.
  std::string listening_;
  mutable Mutex mutex_;
  // Shared with threads that do not end in time.
  std::shared_ptr<SupervisedSession> session_ ABSL_GUARDED_BY(mutex_);
  bool services_started_ ABSL_GUARDED_BY(mutex_) = false;
  // True if the chief's timer saves, and no thread of this does.
  bool chief_saves_ ABSL_GUARDED_BY(mutex_) = false;
  // Destroyed first, because its threads use the rest.
  Coordinator coordinator_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SUPERVISOR_SUPERVISOR_H_

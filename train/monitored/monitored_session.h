#ifndef LOCKSTEP_TRAIN_MONITORED_MONITORED_SESSION_H_
#define LOCKSTEP_TRAIN_MONITORED_MONITORED_SESSION_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/hooked_session.h"
#include "lockstep/train/monitored/scaffold.h"
#include "lockstep/train/session/recovery_policy.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/supervisor/coordinator.h"
#include "lockstep/train/supervisor/session_manager.h"

namespace lockstep::train {

// The options that MonitoredSessionOptions and MonitoredTrainingOptions have in common. They derive from this struct,
// so that it is passed on as a whole.
struct MonitoredOptions {
  SessionOptions session;
  Scaffold scaffold;
  // The hooks must outlive the session.
  std::vector<Hook*> hooks;
  // See HookedSession::Options.
  bool gate_loop = false;
  // The maximum time that a worker waits for its chief.
  absl::Duration max_wait = absl::Seconds(7200);
  absl::Duration recovery_wait = absl::Seconds(30);
  // The time that the coordinator's threads may take to finish when the session ends.
  absl::Duration stop_grace = absl::Seconds(120);
  // Opens the sessions. Replaces the manager that is otherwise created from recovery_wait and the scaffold's ready,
  // ready_for_local_init and local_init: recovery_wait is then ignored, and these fields of the scaffold must have
  // their defaults. May be null. Must outlive the session.
  SessionManager* session_manager = nullptr;
  RecoveryOptions recovery;
};

struct MonitoredSessionOptions : MonitoredOptions {
  // The default is that of TensorFlow's MonitoredSession; MonitoredTrainingSession waits longer.
  MonitoredSessionOptions() { max_wait = absl::Minutes(30); }

  // The hooks are called in this order: first_hooks, own_hooks, hooks. first_hooks must outlive the session.
  std::vector<Hook*> first_hooks;
  std::vector<std::unique_ptr<Hook>> own_hooks;
  // If true, another session is opened after Aborted or Unavailable.
  bool recover = true;
};

class MonitoredSession;

// The session as seen by a function that RunStepFn calls.
class StepContext {
 public:
  explicit StepContext(MonitoredSession* session);

  // Returns a session whose Run calls no hooks, so that they never see the step.
  Session& session() { return unhooked_; }
  absl::StatusOr<StepResult> RunWithHooks(const TrainOp& op);
  // Requests the end of the loop. Returns OutOfRange, which the function should return.
  absl::Status RequestStop();

 private:
  class Unhooked : public SessionDecorator {
   public:
    Unhooked(Session* session, HookedSession* hooked) : SessionDecorator(session), hooked_(hooked) {}
    absl::StatusOr<StepResult> Run(const TrainOp& op) override { return hooked_->RunWithoutHooks(op); }

   private:
    HookedSession* const hooked_;
  };

  MonitoredSession* const session_;
  Unhooked unhooked_;
};

// A session with hooks that reopens itself if its chief was restarted or something that it depends on failed
// temporarily. It calls the hooks' Begin once and AfterCreateSession for each session, and repeats the interrupted run.
// Life cycle: Create, Run until ShouldStop, Close. Destroying it without Close stops it: End is not called, the chief
// saves, and its workers wait for a successor. Must be used by one thread; coordinator() may be used by any.
class MonitoredSession {
 public:
  // Errors: InvalidArgument naming the wrong option; those of hooks and of the session manager; OutOfRange if the run
  // is already over, which is a clean end.
  static absl::StatusOr<std::unique_ptr<MonitoredSession>> Create(MonitoredSessionOptions options);
  ~MonitoredSession();

  // Calls HookedSession::Run. Returns FailedPrecondition after Close and after a requested stop.
  absl::StatusOr<StepResult> Run(const TrainOp& op);

  // Calls `function`, repeating it from the beginning after a recovery, and returns its value. Its errors count as the
  // loop's.
  template <typename T>
  absl::StatusOr<T> RunStepFn(const std::function<absl::StatusOr<T>(StepContext&)>& function) {
    absl::optional<T> value;
    RETURN_IF_ERROR(RunStep([&](StepContext& context) -> absl::Status {
      ASSIGN_OR_RETURN(value, function(context));
      return absl::OkStatus();
    }));
    return *std::move(value);
  }
  // Like RunStepFn, but without a value.
  absl::Status RunStep(const std::function<absl::Status(StepContext&)>& function);

  // Returns true if the loop must end because the session is closed or lost, the run is over, or a hook, a step
  // function or the coordinator has requested a stop.
  bool ShouldStop();
  // Returns true if SessionOptions::stop was requested.
  bool told_to_stop() const { return options_.session.stop != nullptr && options_.session.stop->requested(); }

  // Returns the coordinator for the program's threads. An error in a thread is never a clean end: it counts as the
  // loop's, and Close returns it; after Aborted and Unavailable, the next Run recovers. If the session is lost, the
  // threads are asked to stop and are joined; a hook's AfterCreateSession may then start new ones.
  Coordinator* coordinator() { return &coordinator_; }
  // Returns the session below the hooks, for reads and writes until the next recovery; null if the session is lost. For
  // a Run without hooks, use StepContext.
  Session* raw_session() const { return held_.session.get(); }

  // Stops the coordinator's threads. If the loop and the threads have ended successfully (the loop with OK or
  // OutOfRange), calls the hooks' End and closes the session. After an error, the chief stops the session, so that a
  // successor may continue the run. Returns the first error; Cancelled, without calling End, if the process was asked
  // to stop before the run was over; FailedPrecondition if the session is already closed.
  absl::Status Close();

 private:
  friend class StepContext;
  MonitoredSession(MonitoredSessionOptions options, std::unique_ptr<SessionManager> own_manager);

  absl::Status CreateSession();
  absl::Status CreateSessionWithRetries();
  absl::Status StopThreads();
  // Stops the threads and the session, and returns the result of Session::Stop.
  absl::Status DropSession();
  // Opens another session if `status` permits it. Otherwise returns the error to continue with.
  absl::Status Recover(absl::Status status);
  // Checks before a run that there is a usable session, and recovers if a thread's error requires it.
  absl::Status CheckUsable();

  // After the first session has been created, session.listen holds the address on which it listens.
  MonitoredSessionOptions options_;
  // The options for each session's hooks, except for its gate.
  HookedSession::Options hooked_options_;
  // Null if the options provide a manager.
  const std::unique_ptr<SessionManager> own_manager_;
  SessionManager* const manager_;
  RecoveryPolicy recovery_;
  HeldSession held_;
  std::unique_ptr<HookedSession> hooked_;
  // The reason why there is no session.
  absl::Status lost_;
  bool stop_requested_ = false;
  // True if a run has returned OutOfRange.
  bool over_ = false;
  bool closed_ = false;
  // Destroyed first, because its threads use the session.
  Coordinator coordinator_;
};

// Calls `body` and closes the session, like a with-block. OutOfRange from the session or the body is a clean end. After
// any other error, or an exception in the body, a hook or a thread, the session is stopped. Returns the first error.
absl::Status WithSession(absl::StatusOr<std::unique_ptr<MonitoredSession>> session,
                         const std::function<absl::Status(MonitoredSession&)>& body);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_MONITORED_MONITORED_SESSION_H_

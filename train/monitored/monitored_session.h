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

struct MonitoredSessionOptions {
  SessionOptions session;
  Scaffold scaffold;
  // Called in this order: first_hooks, own_hooks, hooks. Those that it does not own outlive the session.
  std::vector<Hook*> first_hooks;
  std::vector<std::unique_ptr<Hook>> own_hooks;
  std::vector<Hook*> hooks;
  // HookedSession::Options.
  bool gate_loop = false;
  // A worker: how long its chief is waited for.
  absl::Duration max_wait = absl::Minutes(30);
  absl::Duration recovery_wait = absl::Seconds(30);
  // How long the coordinator's threads may continue when the session is left.
  absl::Duration stop_grace = absl::Seconds(120);
  // Opens the sessions in place of one made of recovery_wait, `open`, and the scaffold's ready, ready_for_local_init
  // and local_init: the first two count for nothing then, and the scaffold's must have their defaults. Null: none.
  // Outlives the session.
  SessionManager* session_manager = nullptr;
  // Aborted and Unavailable are followed by another session.
  bool recover = true;
  RecoveryOptions recovery;
  SessionOpener open = OpenHeldSession;
};

class MonitoredSession;

// What a function that RunStepFn calls can do.
class StepContext {
 public:
  explicit StepContext(MonitoredSession* session);

  // Its Run calls no hooks: they never see the step.
  Session& session() { return unhooked_; }
  absl::StatusOr<StepResult> RunWithHooks(const TrainOp& op);
  // The loop is to end: OutOfRange, for the function to return.
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

// A session with hooks that opens itself anew when its chief was restarted, or what it stands on failed for a moment.
// Begin of the hooks is called once; AfterCreateSession for each session; the run that was interrupted is repeated.
// Life: Create, Run until ShouldStop, Close. Destroying it without Close stops it: End is not called, the chief
// saves and its workers wait for a successor. For one thread; coordinator() for any.
class MonitoredSession {
 public:
  // Errors: InvalidArgument names the option that is wrong; those of hooks and of the session manager; OutOfRange when
  // the run is over already, a clean end.
  static absl::StatusOr<std::unique_ptr<MonitoredSession>> Create(MonitoredSessionOptions options);
  ~MonitoredSession();

  // HookedSession::Run. FailedPrecondition after Close, and after a stop was requested.
  absl::StatusOr<StepResult> Run(const TrainOp& op);

  // Calls `function`, the whole of it again after a recovery, and returns its value. An error of it is one of the loop.
  template <typename T>
  absl::StatusOr<T> RunStepFn(const std::function<absl::StatusOr<T>(StepContext&)>& function) {
    absl::optional<T> value;
    RETURN_IF_ERROR(RunStep([&](StepContext& context) -> absl::Status {
      ASSIGN_OR_RETURN(value, function(context));
      return absl::OkStatus();
    }));
    return *std::move(value);
  }
  // The same without a value.
  absl::Status RunStep(const std::function<absl::Status(StepContext&)>& function);

  // The loop is to be left: closed, a hook or the coordinator asked for it, the run is over, or the session is lost.
  bool ShouldStop();
  // By SessionOptions::stop.
  bool told_to_stop() const { return options_.session.stop != nullptr && options_.session.stop->requested(); }

  // For threads of the program; no error of theirs is a clean end. When the session is lost they are told to stop and
  // waited for, and a hook's AfterCreateSession may start others. An error of theirs is one of the loop, which Close
  // returns; after Aborted and Unavailable the next Run recovers.
  Coordinator* coordinator() { return &coordinator_; }
  // The session under the hooks, until the next recovery, to read and write with; null when it is lost. For a Run
  // without hooks there is StepContext.
  Session* raw_session() const { return held_.session.get(); }

  // Stops the coordinator's threads. If loop and threads have ended well (OK or OutOfRange of the loop), calls End of
  // the hooks and closes the session. After an error the chief stops the session, so that a successor may continue the
  // run. Returns the first error; Cancelled, without End, if the process was told to stop before the run was over;
  // FailedPrecondition when it is closed already.
  absl::Status Close();

 private:
  friend class StepContext;
  MonitoredSession(MonitoredSessionOptions options, std::unique_ptr<SessionManager> own_manager);

  absl::Status CreateSession();
  absl::Status CreateSessionWithRetries();
  absl::Status StopThreads();
  // Session::Stop.
  absl::Status DropSession();
  // `status` was met: another session, or the error with which to go on.
  absl::Status Recover(absl::Status status);
  // Before a run: there is a session that may be used.
  absl::Status CheckUsable();

  // From the first session on with the port that it took.
  MonitoredSessionOptions options_;
  // Of each session; the gate is its own.
  HookedSession::Options hooked_options_;
  // Null when the options have one.
  const std::unique_ptr<SessionManager> own_manager_;
  SessionManager* const manager_;
  RecoveryPolicy recovery_;
  HeldSession held_;
  std::unique_ptr<HookedSession> hooked_;
  // Why there is no session.
  absl::Status lost_;
  bool stop_requested_ = false;
  // A run has returned OutOfRange.
  bool over_ = false;
  bool closed_ = false;
  // Ends first: its threads use the session.
  Coordinator coordinator_;
};

// The counterpart of a with-block: calls `body` and closes the session. OutOfRange, of the session or of the body, is a
// clean end. After any other error or an exception, of the body, a hook or a thread, the session is stopped. Returns
// the first error.
absl::Status WithSession(absl::StatusOr<std::unique_ptr<MonitoredSession>> session,
                         const std::function<absl::Status(MonitoredSession&)>& body);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_MONITORED_MONITORED_SESSION_H_

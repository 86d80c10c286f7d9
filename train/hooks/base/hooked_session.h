#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_HOOKED_SESSION_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_HOOKED_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/session/session.h"
#include "lockstep/train/session/step_gate.h"
#include "lockstep/v1/session_state.pb.h"

namespace lockstep::train {

// Calls Begin on each hook, in order. Called once per program, before there is a session. Stops at the first error,
// which names the hook, and returns it.
absl::Status BeginHooks(absl::Span<Hook* const> hooks);

// Returns the states of the hooks' parts, in order, for HookedSession::Options::initial_states. Called after
// BeginHooks. Returns Internal naming a hook that throws.
absl::StatusOr<std::vector<std::string>> StatesOf(absl::Span<Hook* const> hooks);

// A session that calls hooks around each Run of another session. Life cycle: Open, Run until ShouldStop, Close. On a
// worker, each recovery opens a new session and a new HookedSession with the same hooks. Runs entirely in the caller's
// thread. Has the same thread safety as Session.
//
// If a hook returns an error or throws an exception, Run and Close return an error that names the hook, and no further
// hook is called. The chief saves and stops, and a successor may continue the run. A worker leaves the run. Some errors
// have a different effect: OutOfRange ends the run cleanly; Unavailable and Aborted lead to a recovery if the program
// recovers from errors, as every worker does.
class HookedSession : public SessionDecorator {
 public:
  // Maximum number of steps by which hooks that do not gate may lag behind. Beyond that, tokens wait for the hooks.
  static constexpr int64_t kMaxLag = 64;

  // Maximum time that the BeforeRun calls of all hooks together may take on a worker before the block that they see is
  // returned to the chief (Session::LimitHold).
  static constexpr absl::Duration kMaxHold = absl::Milliseconds(100);

  struct Options {
    // The hooks, in calling order. They must outlive the session.
    std::vector<Hook*> hooks;
    // The result of StatesOf before the hooks' first session. If the run has no hook states, hooks whose state an
    // earlier session has since changed are reset to these states. May be empty if the hooks have had no session
    // before.
    std::vector<std::string> initial_states;
    // The chief's gate; null on a worker. Must outlive the session.
    StepGate* gate = nullptr;
    // If true, the tokens of the next step wait for the loop's own code between two Runs, as if a hook gated every
    // step.
    bool gate_loop = false;
    // If true, the chief's loop processes a step after Run has returned it. States are then kept only by KeepStates, so
    // that a chief that continues from a checkpoint shows each step to the hooks and the loop again until the loop has
    // processed it. The loop's Assign and ChangeSettings are handled like those of a hook. Requires gate_loop.
    bool loop_keeps_states = false;
    // If true, Unavailable or Aborted from a hook does not stop the chief's session, because another session follows.
    bool recover = false;
  };

  // Restores the hooks' states from the checkpoint that the run continues from, calls AfterCreateSession on each hook,
  // and lets the first steps begin. `session` must outlive the result, and stays open if this fails. Errors: those of
  // the hooks and the session; InvalidArgument naming hooks that are missing although the checkpoint has their state,
  // or hooks that keep state but are not in the checkpoint, unless they only look or the run continues from a
  // successful end; InvalidArgument naming two hooks with the same name if one of them keeps state.
  static absl::StatusOr<std::unique_ptr<HookedSession>> Open(Session* session, Options options);

  // Returns FailedPrecondition after a hook has requested a stop, and after Close. Does not call AfterRun if the run
  // fails or is over. After the run, reads the values that the hooks have requested with Fetch; an error of that read
  // counts as the hooks'.
  absl::StatusOr<StepResult> Run(const TrainOp& op) override;
  // Like Run, but the hooks never see the step.
  absl::StatusOr<StepResult> RunWithoutHooks(const TrainOp& op);
  bool ShouldStop() override;
  absl::Status Assign(absl::Span<const NamedTensor> values) override {
    return options_.loop_keeps_states ? AssignByHook(values) : SessionDecorator::Assign(values);
  }
  absl::Status ChangeSettings(const SettingsChange& change) override {
    return options_.loop_keeps_states ? ChangeByHook(change) : SessionDecorator::ChangeSettings(change);
  }

  // Records the hooks' states, and ends the run if a hook has requested a stop. With loop_keeps_states, the loop must
  // call this after it has processed all steps that it has received, at least once every kMaxLag steps; otherwise, Run
  // fails. Errors: those of getting a state and of ending the run.
  absl::Status KeepStates();
  // Returns true if a hook has requested a stop. Run must not be called after that.
  bool stop_requested() const { return !stop_reason_.empty(); }

  // Reports an error in the loop's own code or in a thread of the program. OK and OutOfRange change nothing.
  void SetLoopStatus(const absl::Status& status);

  // If the loop has ended successfully (OK or OutOfRange), calls End on each hook and closes the session. After an
  // error, including one from End, the chief stops the session instead, so that a successor may continue the run. If
  // the process was asked to stop (Cancelled), closes the session without calling End. Returns the first error. Returns
  // FailedPrecondition if the session is already closed.
  absl::Status Close() override;

 private:
  HookedSession(Session* session, Options options);
  absl::Status Start();
  absl::Status RestoreStates(const v1::SessionState& restored);
  // `missing` are the hooks that only the checkpoint has, and `added` are the hooks that it lacks. Returns OK if both
  // lists are empty. Otherwise, records them if the run continues from a successful end, and returns InvalidArgument if
  // it does not.
  absl::Status CheckSameHooks(int64_t step, absl::Span<const std::string> missing,
                              absl::Span<const std::string> added) const;
  // Sets the states to options_.initial_states.
  absl::Status ResetStates();
  // Returns the states of all hooks, including the names of hooks that keep no state.
  absl::StatusOr<std::vector<v1::SessionState::Hook>> States() const;
  // Returns the last step whose tokens may be sent after the hooks have seen `step_`.
  int64_t Limit() const;
  // Lets further steps begin before the next Run, unless the loop or a hook gates the newest step that the hooks have
  // seen.
  void AllowBeforeRun();
  // Calls the gate's AllowThrough. While no hook gates, skips most of these calls, because each takes a lock that the
  // steps need.
  void AllowThrough(int64_t limit);
  absl::Status CheckRun() const;
  // Performs an Assign or ChangeSettings for a hook, unless an earlier chief did so and the checkpoint contains the
  // change.
  absl::Status AssignByHook(absl::Span<const NamedTensor> values);
  absl::Status ChangeByHook(const SettingsChange& change);
  absl::Status CallBeforeRun(RunContext* context);
  absl::Status Fetch(const RunContext& context, RunValues* values);
  absl::Status CallAfterRun(RunContext* context, const RunValues& values);
  // Called when the hooks have seen `step_`. Records their states, unless the loop does that, and ends the run or lets
  // it continue.
  absl::Status Advance();
  // Records the first hook that requests a stop.
  void NoteStop(const RunContext& context, const Hook& hook);
  // Handles an error returned by a hook, which already names the hook, and returns it.
  absl::Status Fail(const absl::Status& error);
  absl::Status CallEnd();
  // Leaves the run after an error, and logs further errors.
  void LeaveAfterError();

  // The session that hooks receive. It rejects Run, which would wait for a step that waits for the hook.
  class NoRuns : public SessionDecorator {
   public:
    explicit NoRuns(Session* base) : SessionDecorator(base) {}
    absl::StatusOr<StepResult> Run(const TrainOp&) override {
      return absl::FailedPreconditionError("Run of a session by a hook, for which the session's own run waits");
    }
  };
  // The session that hooks receive around a run. It counts their assignments and changes.
  class HooksView : public NoRuns {
   public:
    HooksView(Session* base, HookedSession* owner) : NoRuns(base), owner_(owner) {}
    absl::Status Assign(absl::Span<const NamedTensor> values) override { return owner_->AssignByHook(values); }
    absl::Status ChangeSettings(const SettingsChange& change) override { return owner_->ChangeByHook(change); }

   private:
    HookedSession* const owner_;
  };

  Session* const base_;
  NoRuns outside_;  // before the first run, and after the last one
  HooksView view_;
  const Options options_;
  // The newest global step that the hooks have seen.
  int64_t step_ = 0;
  // The newest global step for which states are kept.
  int64_t kept_step_ = 0;
  // The name of the hook that requested a stop, and its reason.
  std::string stop_reason_;
  // True on the chief if no step begins before BeforeRun of the next step has returned.
  bool held_ = false;
  // Numbers of assignments and changes that the hooks will repeat although the restored checkpoint already contains
  // them.
  int64_t repeated_assignments_ = 0;
  int64_t repeated_changes_ = 0;
  // The limit passed to the last AllowThrough.
  absl::optional<int64_t> allowed_;
  // The reason why the loop failed, or OK.
  absl::Status failure_;
  // For each fetch of the context in the current run, the hook that requested it.
  std::vector<const Hook*> fetched_by_;
  bool base_closed_ = false;
  bool closed_ = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_HOOKED_SESSION_H_

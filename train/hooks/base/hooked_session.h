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

// Calls Begin of each, in order: once for a program's life, before there is a session. The first error, which names the
// hook, ends it.
absl::Status BeginHooks(absl::Span<Hook* const> hooks);

// Returns the states of the hooks' parts, in order: HookedSession::Options::initial_states after BeginHooks.
std::vector<std::string> StatesOf(absl::Span<Hook* const> hooks);

// Calls hooks around each Run of a session. Life: Open, Run until ShouldStop, Close. On a worker that recovers, each
// recovery has a session and a HookedSession of its own, with the same hooks. Nothing of it runs in another thread than
// the caller's. Thread-safety: that of Session.
//
// An error of a hook, or an exception that it throws, is named and returned by Run and Close. No later hook is called.
// The chief stops: it saves, and a successor may continue the run. A worker leaves the run. Two kinds are no such
// error: OutOfRange is a clean end; Unavailable and Aborted are followed by a recovery, if there is one, as on every
// worker.
class HookedSession : public SessionDecorator {
 public:
  // Steps by which hooks that do not gate may lag behind before tokens wait for them.
  static constexpr int64_t kMaxLag = 64;

  // On a worker, BeforeRun of all hooks may take this long before the block that they see is given back to the chief
  // (Session::LimitHold).
  static constexpr absl::Duration kMaxHold = absl::Milliseconds(100);

  struct Options {
    // In the order in which they are called. They outlive the session.
    std::vector<Hook*> hooks;
    // StatesOf the hooks before they had a session: where the run has none of theirs, those that have come to another
    // one get it back, as they saw another life of the run. Empty: they have seen none.
    std::vector<std::string> initial_states;
    // The chief's; null on a worker. Outlives the session.
    StepGate* gate = nullptr;
    // The loop's own code between two Runs decides before the next step's tokens are given, as a hook that gates every
    // step does.
    bool gate_loop = false;
    // With gate_loop, on the chief: the loop deals with a step after Run has returned it. States are kept by KeepStates
    // alone, so that a life that continues from a checkpoint shows hooks and loop each step until the loop has dealt
    // with it. Assign and ChangeSettings count as a hook's.
    bool loop_keeps_states = false;
    // The chief: Unavailable and Aborted of a hook do not stop the session; another session is to follow.
    bool recover = false;
  };

  // Gives the hooks the state of the checkpoint that the run continues from, calls AfterCreateSession of each, and lets
  // the first steps through. `session` must outlive the result, and stays open when this fails.
  // Errors: InvalidArgument names the hooks whose state the checkpoint has and that are not there, those that keep a
  // state and were not there, unless they only look or the run continues from a good end, and two of one name of which
  // one keeps a state; those of the hooks and the session.
  static absl::StatusOr<std::unique_ptr<HookedSession>> Open(Session* session, Options options);

  // FailedPrecondition after a hook has requested the stop, and after Close. When the run fails, or is over, AfterRun
  // is not called. What hooks fetch is read after the run; an error of that is one of the hook that asked for it.
  absl::StatusOr<StepResult> Run(const TrainOp& op) override;
  // The same, but the hooks never see the step.
  absl::StatusOr<StepResult> RunWithoutHooks(const TrainOp& op);
  bool ShouldStop() override;
  absl::Status Assign(absl::Span<const NamedTensor> values) override {
    return options_.loop_keeps_states ? AssignByHook(values) : SessionDecorator::Assign(values);
  }
  absl::Status ChangeSettings(const SettingsChange& change) override {
    return options_.loop_keeps_states ? ChangeByHook(change) : SessionDecorator::ChangeSettings(change);
  }

  // With loop_keeps_states: the loop has dealt with all steps that it has had. Keeps the hooks' states, and ends the
  // run if a hook has requested the stop. The loop calls it at least once in kMaxLag steps: Run fails otherwise.
  // Errors: those of a state, and of the end.
  absl::Status KeepStates();
  // A hook has requested the stop: no Run may follow.
  bool stop_requested() const { return !stop_reason_.empty(); }

  // The loop's own code, or a thread of the program, has failed. OK and OutOfRange change nothing.
  void SetLoopStatus(const absl::Status& status);

  // If the loop has ended well (OK or OutOfRange), calls End of each hook and closes the session. After an error, of
  // End as well, the chief stops the session instead, so that a successor may continue the run. Cancelled, of a process
  // that was told to stop, closes the session without End. Returns the first error. FailedPrecondition when it is
  // closed already.
  absl::Status Close() override;

 private:
  HookedSession(Session* session, Options options);
  absl::Status Start();
  absl::Status RestoreStates(const v1::SessionState& restored);
  // If either list has names, hooks of the checkpoint that are missing here and added ones, records them after a good
  // end. Otherwise InvalidArgument.
  absl::Status CheckSameHooks(int64_t step, absl::Span<const std::string> missing,
                              absl::Span<const std::string> added) const;
  // To the initial ones.
  absl::Status ResetStates();
  // Of all hooks; those that keep nothing are named, too.
  absl::StatusOr<std::vector<v1::SessionState::Hook>> States() const;
  // Through which step the tokens may be given after the hooks have seen `step_`.
  int64_t Limit() const;
  // Lets steps through already before the next Run, unless the loop or a hook gates the step that was seen last.
  void AllowBeforeRun();
  // The gate's AllowThrough, but while no hook gates not for each step: it takes a lock that the steps need.
  void AllowThrough(int64_t limit);
  absl::Status CheckRun() const;
  // An Assign or ChangeSettings of a hook. One that an earlier life has made, and that the checkpoint has, is not made
  // again.
  absl::Status AssignByHook(absl::Span<const NamedTensor> values);
  absl::Status ChangeByHook(const SettingsChange& change);
  absl::Status CallBeforeRun(RunContext* context);
  absl::Status Fetch(const RunContext& context, RunValues* values);
  absl::Status CallAfterRun(RunContext* context, const RunValues& values);
  // The hooks have seen `step_`: keeps their states, unless the loop does, and ends the run or lets it continue.
  absl::Status Advance();
  // Notes who has asked for the stop first.
  void NoteStop(const RunContext& context, const Hook& hook);
  // An error of a hook, already named.
  absl::Status Fail(const absl::Status& error);
  absl::Status CallEnd();
  // Leaves the run after an error, and logs what else goes wrong.
  void LeaveAfterError();

  // The session that hooks are given: the step that a Run of theirs would wait for waits for them.
  class NoRuns : public SessionDecorator {
   public:
    explicit NoRuns(Session* base) : SessionDecorator(base) {}
    absl::StatusOr<StepResult> Run(const TrainOp&) override {
      return absl::FailedPreconditionError("Run of a session by a hook, for which the session's own run waits");
    }
  };
  // The same around a run.
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
  // The newest global step of which states are kept.
  int64_t kept_step_ = 0;
  // The hook that asked for the stop, and its reason.
  std::string stop_reason_;
  // On the chief: no step is let through before BeforeRun of the next one has returned.
  bool held_ = false;
  // Assignments and changes of the hooks that they make once more, as the run continues from a checkpoint that has
  // them.
  int64_t repeated_assignments_ = 0;
  int64_t repeated_changes_ = 0;
  // Of the newest AllowThrough.
  absl::optional<int64_t> allowed_;
  // Why the loop did not end well.
  absl::Status failure_;
  // Of the present run: the hook that asked for each of the context's fetches.
  std::vector<const Hook*> fetched_by_;
  bool base_closed_ = false;
  bool closed_ = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_HOOKED_SESSION_H_

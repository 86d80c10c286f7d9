#ifndef LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/train/session/session.h"

namespace lockstep::train {

// The context of one session run, passed to its hooks.
class RunContext {
 public:
  explicit RunContext(Session* session) : session_(session) {}

  Session& session() { return *session_; }
  // The global step before the run.
  int64_t global_step() const { return global_step_; }

  // Called in BeforeRun to request a value, which is read after the run (Session::Read). If the hook gates the step,
  // the value is from that step; otherwise, it is from that step or a later one.
  void Fetch(const std::string& name) { fetches_.push_back(name); }
  // Ends the loop after AfterRun of all hooks has been called. On the chief, this also ends the run; if a hook gates
  // the step, the run ends at exactly this step.
  void RequestStop(absl::string_view reason) {
    if (stop_reason_.empty()) stop_reason_ = reason.empty() ? "a hook asked for the end" : std::string(reason);
  }
  bool stop_requested() const { return !stop_reason_.empty(); }

  // Used by the code that calls hooks.
  void set_global_step(int64_t step) { global_step_ = step; }
  const std::vector<std::string>& fetches() const { return fetches_; }
  const std::string& stop_reason() const { return stop_reason_; }

 private:
  Session* const session_;
  int64_t global_step_ = 0;
  std::vector<std::string> fetches_;
  std::string stop_reason_;
};

// The outcome of one run.
struct RunValues {
  StepResult result;
  // The values that hooks fetched, by name, and their global step.
  std::map<std::string, NamedTensor> fetched;
  int64_t fetched_step = 0;
};

// An object that is called around each run of a session. On the chief, a hook sees each global step once per chief
// process, in order; after a restart, it continues from the restored step. On a worker, it sees each block. All calls
// come from the thread that calls Session::Run, and may block, because no server thread waits for them. If a call
// returns an error or throws an exception, the session stops with an error that names the hook: no later hook is
// called, the chief saves, and the run can be continued. The session passed to a call returns FailedPrecondition from
// Run.
class Hook {
 public:
  virtual ~Hook() = default;

  // The name distinguishes hooks that keep state and identifies them in errors. Must be UTF-8.
  virtual std::string name() const = 0;
  // Returns true if the hook never stops the run and never assigns or changes anything. No weight depends on such a
  // hook, so it may be added to or removed from an unfinished run, even if it keeps state.
  virtual bool OnlyLooks() const { return false; }

  // Called once, before there is a session.
  virtual absl::Status Begin() { return absl::OkStatus(); }
  // Called for each session: at the start, and after each recovery. Assignments made here are repeated each time.
  virtual absl::Status AfterCreateSession(Session& session) { return absl::OkStatus(); }
  // On a worker, BeforeRun sees the block that the run is about to compute. A BeforeRun that takes longer than 100 ms
  // (HookedSession::kMaxHold), or that calls Session::LimitHold(0) before it waits, does not hold up other processes:
  // the block is returned to the chief, and the run computes a later one. The run's step is then not
  // context.global_step() + 1. BeforeRun and AfterRun may make assignments (RunContext::session, from their own
  // thread). If a chief is killed before their state is saved, the next chief shows them the step again, and skips
  // assignments that the values already contain.
  virtual absl::Status BeforeRun(RunContext& context) { return absl::OkStatus(); }
  virtual absl::Status AfterRun(RunContext& context, const RunValues& values) { return absl::OkStatus(); }
  // Called once, after the loop has ended successfully.
  virtual absl::Status End(Session& session) { return absl::OkStatus(); }

  // Returns true if, on the chief, the next step must wait until both AfterRun of the run that made `step` and
  // BeforeRun of the next run have returned. A hook must gate the steps at which it may stop, assign or skip; a hook
  // that only observes may lag behind by up to 64 steps. The result must depend on the step alone.
  virtual bool GatesAt(int64_t step) const { return true; }

  // Returns the hook's state after AfterRun, which every checkpoint then contains. A chief that continues from a
  // checkpoint passes the state to SetState before AfterCreateSession. If empty, no state is kept. The states of all
  // hooks together are limited to 1 GiB.
  virtual std::string State() const { return ""; }
  virtual absl::Status SetState(absl::string_view state) { return absl::OkStatus(); }
  // Returns the parts of this hook that each keep a state under their own name; this hook owns them. By default, the
  // hook itself is the only part. Of a part, only name, OnlyLooks, State and SetState are called.
  virtual std::vector<Hook*> StateParts() { return {this}; }
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_H_

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

  // Requests a value in BeforeRun, to be read after the run (Session::Read). If the hook gates the step, the value is
  // from that step; otherwise it is from that step or a later one.
  void Fetch(const std::string& name) { fetches_.push_back(name); }
  // Ends the loop after all hooks' AfterRun. On the chief this ends the run, at this step if a hook gates it.
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

// Called around each run of a session. On the chief, a hook sees each global step, in order, once per life of the
// chief; after a restart, it continues from the restored step. On a worker, it sees each block. All calls come from the
// thread that calls Session::Run, and may block, because no server thread waits for them. An error or exception of a
// call stops the session with an error that names the hook: no later hook is called, the chief saves, and the run can
// be continued. The session passed to a call returns FailedPrecondition from Run.
class Hook {
 public:
  virtual ~Hook() = default;

  // The name distinguishes hooks that keep a state and identifies them in errors. UTF-8.
  virtual std::string name() const = 0;
  // Returns true if the hook never stops the run, assigns or changes anything. No weight depends on such a hook, so it
  // may join or leave an unfinished run, even if it keeps a state.
  virtual bool OnlyLooks() const { return false; }

  // Called once, before there is a session.
  virtual absl::Status Begin() { return absl::OkStatus(); }
  // Called for each session: at the start, and after each recovery. Assignments made here are repeated each time.
  virtual absl::Status AfterCreateSession(Session& session) { return absl::OkStatus(); }
  // On a worker, BeforeRun sees the block that the run is about to compute. A BeforeRun that takes longer than 100 ms
  // (HookedSession::kMaxHold), or calls Session::LimitHold(0) before it waits, does not hold up other processes: the
  // block is given back, and the run computes a later one. The run's step is then not context.global_step() + 1.
  // BeforeRun and AfterRun may assign (RunContext::session, from their own thread). If a chief is killed before their
  // state is saved, its next life shows them the step again, and skips assignments that the values already contain.
  virtual absl::Status BeforeRun(RunContext& context) { return absl::OkStatus(); }
  virtual absl::Status AfterRun(RunContext& context, const RunValues& values) { return absl::OkStatus(); }
  // Called once, after the loop has ended successfully.
  virtual absl::Status End(Session& session) { return absl::OkStatus(); }

  // Returns true if, on the chief, the next step must wait until AfterRun of the run that made `step`, and BeforeRun of
  // the next run, have returned. A hook must gate the steps at which it may stop, assign or skip; a hook that only
  // observes may lag behind by up to 64 steps. The result must depend on the step alone.
  virtual bool GatesAt(int64_t step) const { return true; }

  // Returns the hook's state after AfterRun. Every checkpoint holds it. A life that continues from a checkpoint calls
  // SetState with it before AfterCreateSession. If empty, nothing is kept. The states of all hooks together are limited
  // to 1 GiB.
  virtual std::string State() const { return ""; }
  virtual absl::Status SetState(absl::string_view state) { return absl::OkStatus(); }
  // Returns the parts that each keep a state under their own name; the hook owns them. By default, the hook itself is
  // the only part. Only name, OnlyLooks, State and SetState of a part are called.
  virtual std::vector<Hook*> StateParts() { return {this}; }
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_H_

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

// The context of one run of a session, which its hooks receive.
class RunContext {
 public:
  explicit RunContext(Session* session) : session_(session) {}

  Session& session() { return *session_; }
  // The global step before the run.
  int64_t global_step() const { return global_step_; }

  // Requests a value, in BeforeRun, to be read after the run (Session::Read). If the hook gates the step, the value is
  // of that step; otherwise it is of that step or a later one.
  void Fetch(const std::string& name) { fetches_.push_back(name); }
  // Ends the loop after AfterRun of all hooks. On the chief this ends the run, at this step if a hook gates it.
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

// Called around each run of a session: on the chief around each global step, in order, once per life of the chief,
// after a restart from the restored step; on a worker around each block. All calls come from the thread that calls
// Session::Run, and may block: no thread of the server waits for them. An error or exception of a call stops the
// session and names the hook: no later hook is called, the chief saves, and the run can be continued. Run of the
// session that a call receives returns FailedPrecondition.
class Hook {
 public:
  virtual ~Hook() = default;

  // Distinguishes hooks that keep a state, and names them in errors. UTF-8.
  virtual std::string name() const = 0;
  // Returns true if the hook never stops the run, assigns or changes anything: no weight depends on it, so that it may
  // join an unfinished run, or leave it, even if it keeps a state.
  virtual bool OnlyLooks() const { return false; }

  // Called once, before there is a session.
  virtual absl::Status Begin() { return absl::OkStatus(); }
  // Called for each session: at the start, and after each recovery. Its assignments are made each time.
  virtual absl::Status AfterCreateSession(Session& session) { return absl::OkStatus(); }
  // On a worker, BeforeRun sees the block that the run is about to compute. A BeforeRun that takes longer than 100 ms
  // (HookedSession::kMaxHold), or calls Session::LimitHold(0) before it waits, holds up no other process: the block is
  // given back, and the run computes a later one. The step that the run makes is then not context.global_step() + 1.
  // BeforeRun and AfterRun may assign (RunContext::session, from their own thread). If a chief is killed before their
  // state is saved, its next life shows them the step again, and skips assignments that the values already contain.
  virtual absl::Status BeforeRun(RunContext& context) { return absl::OkStatus(); }
  virtual absl::Status AfterRun(RunContext& context, const RunValues& values) { return absl::OkStatus(); }
  // Called once, when the loop has ended successfully.
  virtual absl::Status End(Session& session) { return absl::OkStatus(); }

  // Returns true if, on the chief, the next step must wait until AfterRun of the run that made `step`, and BeforeRun of
  // the next run, have returned. A hook must gate the steps at which it may stop, assign or skip; a hook that only
  // looks may lag behind by up to 64 steps. The result must depend on the step alone.
  virtual bool GatesAt(int64_t step) const { return true; }

  // Returns the hook's state after AfterRun. Every checkpoint holds it, and SetState restores it before
  // AfterCreateSession of the life that continues from there. If empty, nothing is kept. All hooks together may have
  // 1 GiB.
  virtual std::string State() const { return ""; }
  virtual absl::Status SetState(absl::string_view state) { return absl::OkStatus(); }
  // Returns the parts that keep a state each, under names of their own; the hook owns them. By default it is the hook
  // itself. Only name, OnlyLooks, State and SetState of a part are called.
  virtual std::vector<Hook*> StateParts() { return {this}; }
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_BASE_HOOK_H_

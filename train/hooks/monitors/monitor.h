#ifndef LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_H_
#define LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/session/session.h"

namespace lockstep::train {

// The older protocol of what follows a training, which a MonitorHookAdapter makes a hook of. Its life:
//
//   Begin, [EpochBegin, (StepBegin, StepEnd, PostStep)*, EpochEnd]*, End
//
// where a step is the number that the run's update brings the global step to, and epochs may be left out. After an
// interrupted step StepBegin may be called again without StepEnd. The base checks that order: InvalidArgument, as the
// original's ValueError. Who overrides a call calls the base's first. Calls come from one thread.
class Monitor {
 public:
  virtual ~Monitor() = default;

  // Distinguishes monitors that keep a state, and names them in errors.
  virtual std::string name() const = 0;
  // The others are for the chief alone.
  virtual bool run_on_all_workers() const { return false; }
  // As a hook's.
  virtual bool OnlyLooks() const { return false; }

  // `max_steps`: the last step that there may be, if that is known.
  virtual absl::Status Begin(absl::optional<int64_t> max_steps);
  virtual absl::Status End(Session& session);
  virtual absl::Status EpochBegin(int64_t epoch);
  virtual absl::Status EpochEnd(int64_t epoch);
  // Returns the names of what StepEnd is to be given besides the result.
  virtual absl::StatusOr<std::vector<std::string>> StepBegin(int64_t step);
  // Returns whether to stop.
  virtual absl::StatusOr<bool> StepEnd(int64_t step, const RunValues& values);
  virtual absl::Status PostStep(int64_t step, Session& session) { return absl::OkStatus(); }

  // As a hook's.
  virtual bool GatesAt(int64_t step) const { return true; }
  virtual std::string State() const { return ""; }
  virtual absl::Status SetState(absl::string_view state) { return absl::OkStatus(); }

 protected:
  const absl::optional<int64_t>& max_steps() const { return max_steps_; }

 private:
  bool begun_ = false;
  absl::optional<int64_t> max_steps_;
  absl::optional<int64_t> epoch_;
  absl::optional<int64_t> step_;
};

// Does something at the first steps and then every so many: active at step s if s <= first_n_steps, if s is
// every_n_steps or more behind the last active one (0 before there is any), and at the last step if that is known.
// Gates where it is active.
class EveryN : public Monitor {
 public:
  // 0: every step.
  explicit EveryN(int64_t every_n_steps = 100, int64_t first_n_steps = 1)
      : every_n_steps_(every_n_steps), first_n_steps_(first_n_steps) {}

  absl::StatusOr<std::vector<std::string>> StepBegin(int64_t step) final;
  absl::StatusOr<bool> StepEnd(int64_t step, const RunValues& values) final;
  absl::Status PostStep(int64_t step, Session& session) final;
  // Calls EveryNPostStep for the last step if it was not active. Not when there was none.
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override { return IsActive(step); }
  // When it was active: a restart of the chief continues the sequence. A subclass with a state of its own adds it.
  std::string State() const override;
  absl::Status SetState(absl::string_view state) override;

 protected:
  virtual absl::StatusOr<std::vector<std::string>> EveryNStepBegin(int64_t step) { return std::vector<std::string>(); }
  virtual absl::StatusOr<bool> EveryNStepEnd(int64_t step, const RunValues& values) { return false; }
  virtual absl::Status EveryNPostStep(int64_t step, Session& session) { return absl::OkStatus(); }

 private:
  bool IsActive(int64_t step) const;

  const int64_t every_n_steps_;
  const int64_t first_n_steps_;
  int64_t last_active_step_ = 0;
  // Of PostStep.
  absl::optional<int64_t> last_step_;
  bool active_ = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_H_

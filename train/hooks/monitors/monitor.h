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

// An observer of training that follows the older monitor protocol of tf.contrib.learn; a MonitorHookAdapter turns it
// into a hook. Life cycle:
//
//   Begin, [EpochBegin, (StepBegin, StepEnd, PostStep)*, EpochEnd]*, End
//
// where a step is the global step that the run's update makes, and the epoch calls may be left out. After an
// interrupted step, StepBegin may be called again without StepEnd. The base class checks this order and returns
// InvalidArgument where the original raises ValueError. Overrides must call the base class first. All calls come from
// one thread.
class Monitor {
 public:
  virtual ~Monitor() = default;

  // The name distinguishes monitors that keep state and identifies them in errors.
  virtual std::string name() const = 0;
  // Returns true if the monitor runs on workers, too; otherwise it runs only on the chief.
  virtual bool run_on_all_workers() const { return false; }
  // See Hook::OnlyLooks.
  virtual bool OnlyLooks() const { return false; }

  // `max_steps` is the last possible step, if known.
  virtual absl::Status Begin(absl::optional<int64_t> max_steps);
  virtual absl::Status End(Session& session);
  virtual absl::Status EpochBegin(int64_t epoch);
  virtual absl::Status EpochEnd(int64_t epoch);
  // Returns the names of the values that StepEnd needs in addition to the result.
  virtual absl::StatusOr<std::vector<std::string>> StepBegin(int64_t step);
  // Returns true to stop.
  virtual absl::StatusOr<bool> StepEnd(int64_t step, const RunValues& values);
  virtual absl::Status PostStep(int64_t step, Session& session) { return absl::OkStatus(); }

  // See Hook.
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

// A monitor that acts at the first steps and then periodically. Step s is active if s <= first_n_steps, if s is at
// least every_n_steps after the last active step (0 if there is none), or if s is known to be the last step. Gates the
// active steps.
class EveryN : public Monitor {
 public:
  // If every_n_steps is 0, every step is active.
  explicit EveryN(int64_t every_n_steps = 100, int64_t first_n_steps = 1)
      : every_n_steps_(every_n_steps), first_n_steps_(first_n_steps) {}

  absl::StatusOr<std::vector<std::string>> StepBegin(int64_t step) final;
  absl::StatusOr<bool> StepEnd(int64_t step, const RunValues& values) final;
  absl::Status PostStep(int64_t step, Session& session) final;
  // Calls EveryNPostStep for the last step, unless that step was active or no step was taken.
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override { return IsActive(step); }
  // Returns the last active step, from which a restarted chief continues. A subclass that keeps its own state appends
  // it.
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
  // The step of the last PostStep.
  absl::optional<int64_t> last_step_;
  bool active_ = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_MONITORS_MONITOR_H_

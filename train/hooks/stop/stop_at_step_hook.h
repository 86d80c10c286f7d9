#ifndef LOCKSTEP_TRAIN_HOOKS_STOP_STOP_AT_STEP_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_STOP_STOP_AT_STEP_HOOK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

struct StopAtStepOptions {
  // The number of steps after the global step of the first session; at least 1. A recovery or a restart of the chief
  // does not extend it, but a program that is started again after a successful end, or with a different number, counts
  // from its own start. Exactly one of num_steps and last_step must be set.
  absl::optional<int64_t> num_steps;
  // The global step at which to stop; at least 1.
  absl::optional<int64_t> last_step;
};

// The step at which a hook or a monitor stops. A value type.
class StopAtStepTarget {
 public:
  // Returns InvalidArgument naming `owner` unless exactly one of num_steps and last_step is set and it is at least 1.
  static absl::StatusOr<StopAtStepTarget> Create(absl::string_view owner, const StopAtStepOptions& options);

  // Sets the target to num_steps after global step `step`, unless it is already known.
  void CountFrom(int64_t step) {
    if (!last_step_) last_step_ = step + *options_.num_steps;
  }
  // Returns nullopt if num_steps is set and CountFrom has not been called.
  const absl::optional<int64_t>& last_step() const { return last_step_; }
  void set_reached() { reached_ = true; }
  bool reached() const { return reached_; }

  bool GatesAt(int64_t step) const { return !last_step_ || step >= *last_step_; }
  // Returns a state only if num_steps is set and the target has not been reached. Once it has been reached, a program
  // that is started again counts from its own start.
  std::string State() const;
  absl::Status SetState(absl::string_view state);

 private:
  explicit StopAtStepTarget(const StopAtStepOptions& options) : options_(options), last_step_(options.last_step) {}

  StopAtStepOptions options_;
  absl::optional<int64_t> last_step_;
  bool reached_ = false;
};

// A hook that stops when the run reaches a global step. As in the original, at least one Run happens, even after that
// step: a program that is started again after its successful end takes one more step, unless the configuration's
// training.steps ends the run. On a worker, the hook ends only that worker's loop; each worker needs its own hook.
// Gates that step and all later ones.
class StopAtStepHook : public Hook {
 public:
  // Returns InvalidArgument unless exactly one of num_steps and last_step is set and it is at least 1.
  static absl::StatusOr<std::unique_ptr<StopAtStepHook>> Create(const StopAtStepOptions& options);

  std::string name() const override { return "StopAtStepHook"; }
  absl::Status AfterCreateSession(Session& session) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t step) const override { return target_.GatesAt(step); }
  std::string State() const override { return target_.State(); }
  absl::Status SetState(absl::string_view state) override { return target_.SetState(state); }

 private:
  explicit StopAtStepHook(const StopAtStepTarget& target) : target_(target) {}

  StopAtStepTarget target_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_STOP_STOP_AT_STEP_HOOK_H_

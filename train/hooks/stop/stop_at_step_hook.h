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
  // Exactly one of the two, at least 1. So many steps from where the run stands at the first session; a recovery and a
  // restart of the chief do not extend it, but a program that is started again after a good end, or with another
  // number, counts anew.
  absl::optional<int64_t> num_steps;
  // The global step.
  absl::optional<int64_t> last_step;
};

// The step at which a hook or a monitor stops. A value.
class StopAtStepTarget {
 public:
  // InvalidArgument, naming `owner`, for both or neither option, and for numbers below 1.
  static absl::StatusOr<StopAtStepTarget> Create(absl::string_view owner, const StopAtStepOptions& options);

  // Counts num_steps from global step `step`, unless the target is known already.
  void CountFrom(int64_t step) {
    if (!last_step_) last_step_ = step + *options_.num_steps;
  }
  // nullopt before CountFrom, with num_steps.
  const absl::optional<int64_t>& last_step() const { return last_step_; }
  void set_reached() { reached_ = true; }
  bool reached() const { return reached_; }

  bool GatesAt(int64_t step) const { return !last_step_ || step >= *last_step_; }
  // With num_steps alone, until they are reached: a later life then counts anew.
  std::string State() const;
  absl::Status SetState(absl::string_view state);

 private:
  explicit StopAtStepTarget(const StopAtStepOptions& options) : options_(options), last_step_(options.last_step) {}

  StopAtStepOptions options_;
  absl::optional<int64_t> last_step_;
  bool reached_ = false;
};

// Stops when the global step is reached. At least one Run happens, also past it, as in the original: a program that is
// started again after its good end makes a step more, unless training.steps of the configuration ends the run. On a
// worker it ends that worker's loop; each worker needs its own. Gates from that step on.
class StopAtStepHook : public Hook {
 public:
  // InvalidArgument for both or neither, and for numbers below 1.
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

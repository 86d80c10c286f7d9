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

// InvalidArgument, naming `owner`, for both or neither, and for numbers below 1.
absl::Status CheckStopAtStep(absl::string_view owner, const StopAtStepOptions& options);

// What has become of num_steps, for a program that continues with the same number. A value.
struct StopAtStepState {
  int64_t num_steps = 0;
  int64_t last_step = 0;

  std::string Serialize() const;
  static absl::StatusOr<StopAtStepState> Parse(absl::string_view text);
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
  bool GatesAt(int64_t step) const override { return !last_step_ || step >= *last_step_; }
  // With num_steps alone, until they are reached: a later life then counts anew.
  std::string State() const override;
  absl::Status SetState(absl::string_view state) override;

 private:
  explicit StopAtStepHook(const StopAtStepOptions& options) : options_(options), last_step_(options.last_step) {}

  const StopAtStepOptions options_;
  // Unknown before the first session, with num_steps.
  absl::optional<int64_t> last_step_;
  bool reached_ = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_STOP_STOP_AT_STEP_HOOK_H_

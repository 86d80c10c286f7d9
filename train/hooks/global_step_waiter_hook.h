#ifndef LOCKSTEP_TRAIN_HOOKS_GLOBAL_STEP_WAITER_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_GLOBAL_STEP_WAITER_HOOK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/hooks/base/hook.h"

namespace lockstep::train {

struct GlobalStepWaiterOptions {
  // The global step to wait for. If 0 or less, does not wait.
  int64_t wait_until_step = 0;
  // Must be more than 0.
  absl::Duration poll_interval = absl::Milliseconds(500);
  Clock* clock = Clock::Real();
};

// A hook that delays a worker's first block until the run reaches the global step or ends. It holds no block meanwhile.
// On the chief, it does not wait: the chief's hooks follow the steps, so it would wait for itself.
class GlobalStepWaiterHook : public Hook {
 public:
  // Returns InvalidArgument if poll_interval is not positive.
  static absl::StatusOr<std::unique_ptr<GlobalStepWaiterHook>> Create(const GlobalStepWaiterOptions& options);

  std::string name() const override { return "GlobalStepWaiterHook"; }
  absl::Status BeforeRun(RunContext& context) override;
  bool GatesAt(int64_t step) const override { return false; }

 private:
  explicit GlobalStepWaiterHook(const GlobalStepWaiterOptions& options) : options_(options) {}

  const GlobalStepWaiterOptions options_;
  bool waited_ = false;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_GLOBAL_STEP_WAITER_HOOK_H_

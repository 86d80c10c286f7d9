#ifndef LOCKSTEP_TRAIN_HOOKS_CHECKPOINT_SAVER_HOOK_H_
#define LOCKSTEP_TRAIN_HOOKS_CHECKPOINT_SAVER_HOOK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/base/second_or_step_timer.h"

namespace lockstep::train {

// An observer of a CheckpointSaverHook's saves. Called in the thread of the session's caller. Its errors count as the
// hook's.
class CheckpointListener {
 public:
  virtual ~CheckpointListener() = default;
  // Called once, before there is a session.
  virtual absl::Status Begin() { return absl::OkStatus(); }
  virtual absl::Status BeforeSave(Session& session, int64_t step) { return absl::OkStatus(); }
  // Returns true to stop the run. The result is ignored for the first save and the last one.
  virtual absl::StatusOr<bool> AfterSave(Session& session, int64_t step, const std::string& prefix) { return false; }
  // Called after the last save; `step` is the last step.
  virtual absl::Status End(Session& session, int64_t step) { return absl::OkStatus(); }
};

struct CheckpointSaverOptions {
  Period period;
  // The listeners, in call order. They must outlive the hook.
  std::vector<CheckpointListener*> listeners;
  Clock* clock = Clock::Real();
};

// A hook that saves a checkpoint when a session begins, then periodically, and at a successful end if the last step has
// not been saved. The chief's own saves continue as well. With a period in steps, the hook gates the steps at which it
// saves. With a period in time, it gates only if it has listeners, because they must see the step that is saved. Only
// for the chief.
class CheckpointSaverHook : public Hook {
 public:
  // Returns InvalidArgument if the period is invalid.
  static absl::StatusOr<std::unique_ptr<CheckpointSaverHook>> Create(const CheckpointSaverOptions& options);

  std::string name() const override { return "CheckpointSaverHook"; }
  absl::Status Begin() override;
  absl::Status AfterCreateSession(Session& session) override;
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  absl::Status End(Session& session) override;
  bool GatesAt(int64_t step) const override;

 private:
  CheckpointSaverHook(const CheckpointSaverOptions& options, const SecondOrStepTimer& timer)
      : options_(options), timer_(timer) {}
  // Returns true if a listener requests a stop.
  absl::StatusOr<bool> Save(Session& session, int64_t step);

  const CheckpointSaverOptions options_;
  SecondOrStepTimer timer_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_CHECKPOINT_SAVER_HOOK_H_

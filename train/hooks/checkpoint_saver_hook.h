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

// Is told of the saves of a CheckpointSaverHook, in the thread of the session's caller. An error is one of the hook.
class CheckpointListener {
 public:
  virtual ~CheckpointListener() = default;
  // Once, before there is a session.
  virtual absl::Status Begin() { return absl::OkStatus(); }
  virtual absl::Status BeforeSave(Session& session, int64_t step) { return absl::OkStatus(); }
  // Returns whether the run is to stop. After the first save and the last one that counts for nothing.
  virtual absl::StatusOr<bool> AfterSave(Session& session, int64_t step, const std::string& prefix) { return false; }
  // After the last save; `step` is the last one.
  virtual absl::Status End(Session& session, int64_t step) { return absl::OkStatus(); }
};

struct CheckpointSaverOptions {
  Period period;
  // In the order in which they are told; they outlive the hook.
  std::vector<CheckpointListener*> listeners;
  Clock* clock = Clock::Real();
};

// Saves when a session begins, then with a period, and at a good end if the last step is not saved. The chief's own
// saves go on besides. With a period of steps it gates where it saves; with one of time only if it has listeners, since
// they are to see the step that is saved. For the chief.
class CheckpointSaverHook : public Hook {
 public:
  // InvalidArgument for a wrong period.
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
  // Returns whether a listener wants to stop.
  absl::StatusOr<bool> Save(Session& session, int64_t step);

  const CheckpointSaverOptions options_;
  SecondOrStepTimer timer_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_HOOKS_CHECKPOINT_SAVER_HOOK_H_

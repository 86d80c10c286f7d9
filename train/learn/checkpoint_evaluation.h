#ifndef LOCKSTEP_TRAIN_LEARN_CHECKPOINT_EVALUATION_H_
#define LOCKSTEP_TRAIN_LEARN_CHECKPOINT_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/checkpoint_saver_hook.h"

namespace lockstep::train {

// Evaluates the checkpoint with this prefix.
using CheckpointEvaluator = std::function<absl::Status(const std::string& checkpoint)>;

struct CheckpointEvaluationOptions {
  CheckpointEvaluator evaluate;
  std::function<absl::StatusOr<absl::optional<std::string>>()> latest_checkpoint;
  // Looks for a new checkpoint at every multiple of this many global steps; at least 1.
  int64_t every_n_steps = 1;
  // The minimum time between two such checks.
  absl::Duration check_interval = absl::Seconds(5);
  Clock* clock = Clock::Real();
};

// A hook that evaluates the newest checkpoint on the chief if it has changed, in the thread of the session's caller.
// Meanwhile, the run continues until the hooks are 64 steps behind. Skips a missing or damaged checkpoint.
class CheckpointEvaluationHook : public Hook {
 public:
  explicit CheckpointEvaluationHook(CheckpointEvaluationOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "CheckpointEvaluationHook"; }
  absl::Status AfterRun(RunContext& context, const RunValues& values) override;
  bool GatesAt(int64_t /*step*/) const override { return false; }

 private:
  const CheckpointEvaluationOptions options_;
  absl::Time next_look_ = absl::InfinitePast();
  std::string evaluated_;
};

// A listener that evaluates each checkpoint that a CheckpointSaverHook saves, while the next step waits.
class CheckpointEvaluationListener : public CheckpointListener {
 public:
  explicit CheckpointEvaluationListener(CheckpointEvaluator evaluate) : evaluate_(std::move(evaluate)) {}

  absl::StatusOr<bool> AfterSave(Session& session, int64_t step, const std::string& prefix) override;

 private:
  const CheckpointEvaluator evaluate_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_LEARN_CHECKPOINT_EVALUATION_H_

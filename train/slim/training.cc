#include "lockstep/train/slim/training.h"

#include <utility>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/train/session/session_options.h"

namespace lockstep::train::slim::training {

absl::StatusOr<absl::optional<double>> Train(const TrainOp& train_op, const std::string& logdir, TrainOptions options) {
  if (logdir.empty() && options.session.is_chief) {
    if (options.save_summaries_steps.Or(100).value_or(0) != 0) {
      return absl::InvalidArgumentError("save_summaries_steps: is given, but there is no logdir");
    }
    if (SavePeriodOf(options.save_checkpoint_secs, train_op) != absl::ZeroDuration()) {
      return absl::InvalidArgumentError("save_checkpoint_secs: is given, but there is no logdir");
    }
  }
  MonitoredTrainingOptions monitored;
  monitored.session = std::move(options.session);
  monitored.session.op = train_op;
  monitored.session.logdir = logdir;
  monitored.scaffold = std::move(options.scaffold);
  monitored.hooks = std::move(options.hooks);
  monitored.chief_only_hooks = std::move(options.chief_only_hooks);
  monitored.save_checkpoint_secs = options.save_checkpoint_secs;
  monitored.save_summaries_steps = options.save_summaries_steps;
  monitored.max_wait = options.max_wait_secs;
  absl::optional<double> loss;
  RETURN_IF_ERROR(
      WithSession(MonitoredTrainingSession(std::move(monitored)), [&](MonitoredSession& session) -> absl::Status {
        while (!session.ShouldStop()) {
          ASSIGN_OR_RETURN(const StepResult step, session.Run(train_op));
          loss = step.loss;
        }
        return absl::OkStatus();
      }));
  return loss;
}

}  // namespace lockstep::train::slim::training

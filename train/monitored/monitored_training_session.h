#ifndef LOCKSTEP_TRAIN_MONITORED_MONITORED_TRAINING_SESSION_H_
#define LOCKSTEP_TRAIN_MONITORED_MONITORED_TRAINING_SESSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/monitored/monitored_session.h"
#include "lockstep/train/session/choice.h"

namespace lockstep::train {

// The logdir of `session` receives the checkpoints and, unless there is a summary_dir or a summary_writer, the
// summaries. The options below set the session's writes_loss and summary.every_steps, and also checkpoint.every_seconds
// and checkpoint.every_steps if a period is given.
struct MonitoredTrainingOptions : MonitoredOptions {
  // Hooks for the chief, called before all others. They must outlive the session.
  std::vector<Hook*> chief_only_hooks;
  // The periods of the chief's checkpoints, which may be combined. By default, save_checkpoint_secs is
  // checkpoint.every_seconds of the configuration (600 s if not set), or disabled if save_checkpoint_steps is set here,
  // and save_checkpoint_steps is checkpoint.every_steps of the configuration (never if not set). None and 0 disable a
  // period.
  Choice<absl::Duration> save_checkpoint_secs;
  Choice<int64_t> save_checkpoint_steps;
  // The period of the chief's summaries, either in steps or in time. Default: every 100 steps, unless
  // save_summaries_secs is set. None and 0 disable summaries, including those of gradients.
  Choice<int64_t> save_summaries_steps;
  Choice<absl::Duration> save_summaries_secs;
  // Number of steps between writes of the chief's scalars: learning_rate, global_norm/gradient_norm, update_ratio and
  // examples/sec. They are also written at the end. If 0, they are never written.
  int64_t save_scalars_steps = 0;
  // Number of steps between the chief's reports of the step rate, as a log line and a summary. If 0, there are no
  // reports.
  int64_t log_step_count_steps = 100;
};

// Creates a session with a training program's default hooks. On the chief: chief_only_hooks, the step counter, the
// summary saver, then `hooks`; the chief itself writes checkpoints. On a worker: only `hooks`. Errors: InvalidArgument
// naming the wrong option; those of MonitoredSession::Create.
absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(MonitoredTrainingOptions options);

// Creates a session with only `hooks`. It does not recover from Aborted and Unavailable, but returns them.
absl::StatusOr<std::unique_ptr<MonitoredSession>> SingularMonitoredSession(SessionOptions session,
                                                                           std::vector<Hook*> hooks = {},
                                                                           Scaffold scaffold = {});

// Returns the configuration's checkpoint settings with the periods from `options`. Errors: InvalidArgument naming a
// negative period.
absl::StatusOr<config::v1::CheckpointConfig> CheckpointsOf(const MonitoredTrainingOptions& options);

// Returns the options that MonitoredTrainingSession uses to create its session.
absl::StatusOr<MonitoredSessionOptions> ResolveMonitoredTraining(MonitoredTrainingOptions options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_MONITORED_MONITORED_TRAINING_SESSION_H_

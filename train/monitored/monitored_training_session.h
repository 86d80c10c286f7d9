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

struct MonitoredTrainingOptions {
  // Its logdir receives checkpoints and summaries, unless it has a summary_dir or a summary_writer. The options below
  // set its writes_loss and summary.every_steps, and also checkpoint.every_seconds and checkpoint.every_steps if a
  // period is given.
  SessionOptions session;
  Scaffold scaffold;
  // They must outlive the session.
  std::vector<Hook*> hooks;
  // Hooks for the chief, called before all others.
  std::vector<Hook*> chief_only_hooks;
  // The periods of the chief's checkpoints. Default: checkpoint.every_seconds of the configuration (600 s if not set),
  // unless steps are given here, and its checkpoint.every_steps (never if not set). None and 0 disable a period.
  Choice<absl::Duration> save_checkpoint_secs;
  Choice<int64_t> save_checkpoint_steps;
  // The period of the chief's summaries; at most one of the two. Default: every 100 steps, unless seconds are given.
  // None and 0 disable summaries, including those of gradients.
  Choice<int64_t> save_summaries_steps;
  Choice<absl::Duration> save_summaries_secs;
  // The number of steps between writes of the chief's scalars: learning_rate, global_norm/gradient_norm, update_ratio
  // and examples/sec. They are also written at the end. If 0, never.
  int64_t save_scalars_steps = 0;
  // The number of steps between the chief's reports of the step rate, as a log line and a summary. If 0, never.
  int64_t log_step_count_steps = 100;
  // See MonitoredSessionOptions.
  bool gate_loop = false;
  absl::Duration stop_grace_period = absl::Seconds(120);
  absl::Duration max_wait = absl::Seconds(7200);
  absl::Duration recovery_wait = absl::Seconds(30);
  // See MonitoredSessionOptions.
  SessionManager* session_manager = nullptr;
  RecoveryOptions recovery;
  SessionOpener open = OpenHeldSession;
};

// Creates a session with a training program's default hooks. On the chief: chief_only_hooks, the step counter, the
// summary saver, then `hooks`; the chief itself writes checkpoints. On a worker: only `hooks`. Errors: InvalidArgument
// naming the wrong option; those of MonitoredSession::Create.
absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(MonitoredTrainingOptions options);

// Creates a session with only `hooks`. It does not recover, but returns Aborted and Unavailable.
absl::StatusOr<std::unique_ptr<MonitoredSession>> SingularMonitoredSession(SessionOptions session,
                                                                           std::vector<Hook*> hooks = {},
                                                                           Scaffold scaffold = {});

// Returns the checkpoint configuration with the periods of the options. Errors: InvalidArgument naming a negative
// period.
absl::StatusOr<config::v1::CheckpointConfig> CheckpointsOf(const MonitoredTrainingOptions& options);

// Returns the options with which MonitoredTrainingSession creates its session.
absl::StatusOr<MonitoredSessionOptions> ResolveMonitoredTraining(MonitoredTrainingOptions options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_MONITORED_MONITORED_TRAINING_SESSION_H_

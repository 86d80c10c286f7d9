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
  // Hooks of the chief that are called before all others.
  std::vector<Hook*> chief_only_hooks;
  // The periods of the chief's checkpoints. By default, checkpoint.every_seconds, unless steps are given here, and
  // checkpoint.every_steps of the configuration, which are 600 s and never unless they are set. None and 0 disable a
  // period.
  Choice<absl::Duration> save_checkpoint_secs;
  Choice<int64_t> save_checkpoint_steps;
  // The period of the chief's summaries, one of the two. By default every 100 steps, unless seconds are given. None and
  // 0 disable summaries, including those of gradients.
  Choice<int64_t> save_summaries_steps;
  Choice<absl::Duration> save_summaries_secs;
  // The period, in steps, at which the chief writes its scalars, also at the end: learning_rate,
  // global_norm/gradient_norm, update_ratio and examples/sec. If 0, never.
  int64_t save_scalars_steps = 0;
  // The period, in steps, at which the chief logs the rate of steps and writes it as a summary. If 0, never.
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

// Creates a session with the hooks that a training program has by default. On the chief: chief_only_hooks, the step
// counter, the summary saver, then `hooks`; checkpoints are the chief's own. On a worker, only `hooks`. Errors:
// InvalidArgument names the option that is wrong; those of MonitoredSession::Create.
absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(MonitoredTrainingOptions options);

// Creates a session with only `hooks`, which does not recover: it returns Aborted and Unavailable.
absl::StatusOr<std::unique_ptr<MonitoredSession>> SingularMonitoredSession(SessionOptions session,
                                                                           std::vector<Hook*> hooks = {},
                                                                           Scaffold scaffold = {});

// Returns the configuration of checkpoints with the periods of the options. Errors: InvalidArgument names a negative
// one.
absl::StatusOr<config::v1::CheckpointConfig> CheckpointsOf(const MonitoredTrainingOptions& options);

// Returns the options with which MonitoredTrainingSession creates its session.
absl::StatusOr<MonitoredSessionOptions> ResolveMonitoredTraining(MonitoredTrainingOptions options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_MONITORED_MONITORED_TRAINING_SESSION_H_

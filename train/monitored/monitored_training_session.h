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
  // Its logdir is where checkpoints and summaries go, unless it has a summary_dir or a summary_writer. Its writes_loss
  // and summary.every_steps are set by what follows, and so are checkpoint.every_seconds and checkpoint.every_steps if
  // a period is given.
  SessionOptions session;
  Scaffold scaffold;
  // They outlive the session.
  std::vector<Hook*> hooks;
  // The chief: called before all others.
  std::vector<Hook*> chief_only_hooks;
  // The chief's checkpoints. Default: checkpoint.every_seconds, unless steps are given here, and checkpoint.every_steps
  // of the configuration, which are 600 s and never unless they are set. None and 0: not with that period.
  Choice<absl::Duration> save_checkpoint_secs;
  Choice<int64_t> save_checkpoint_steps;
  // The chief's summaries: one of the two. Default: every 100 steps, unless seconds are given. None and 0: no
  // summaries, gradients' included.
  Choice<int64_t> save_summaries_steps;
  Choice<absl::Duration> save_summaries_secs;
  // The chief's scalars, every so many steps and at the end: learning_rate, global_norm/gradient_norm, update_ratio and
  // examples/sec. 0: never.
  int64_t save_scalars_steps = 0;
  // The chief: the rate of steps, logged and as a summary. 0: never.
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

// A session with the hooks that a training program has by default. On the chief: chief_only_hooks, the step counter,
// the summary saver, then `hooks`; checkpoints are the chief's own. On a worker `hooks` alone. Errors: InvalidArgument
// names the option that is wrong; those of MonitoredSession::Create.
absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(MonitoredTrainingOptions options);

// A session with `hooks` and nothing else, which does not recover: Aborted and Unavailable are returned.
absl::StatusOr<std::unique_ptr<MonitoredSession>> SingularMonitoredSession(SessionOptions session,
                                                                           std::vector<Hook*> hooks = {},
                                                                           Scaffold scaffold = {});

// Returns the configuration of checkpoints with the periods that the options give. Errors: InvalidArgument names one
// that is negative.
absl::StatusOr<config::v1::CheckpointConfig> CheckpointsOf(const MonitoredTrainingOptions& options);

// What MonitoredTrainingSession creates its session with.
absl::StatusOr<MonitoredSessionOptions> ResolveMonitoredTraining(MonitoredTrainingOptions options);

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_MONITORED_MONITORED_TRAINING_SESSION_H_

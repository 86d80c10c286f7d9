#ifndef LOCKSTEP_TRAIN_SLIM_LEARNING_H_
#define LOCKSTEP_TRAIN_SLIM_LEARNING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/saver/assign_from.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/saver/saver.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/init/init_op.h"
#include "lockstep/train/session/recovery_policy.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/slim/train_step.h"
#include "lockstep/train/supervisor/session_manager.h"
#include "lockstep/train/supervisor/supervisor.h"

namespace lockstep::train::slim {

using train::InitOp;
// What the loop uses in place of the session, which outlives it. Null is an error.
using SessionWrapper = std::function<std::unique_ptr<Session>(Session* session)>;

// How many gradients are averaged in one update: SyncReplicasOptimizer's arguments. total_num_replicas is the
// configuration's training.first_arrivals.total_replicas. Without first_arrivals it is logged and has no effect, since
// workers may come and go.
struct SyncReplicas {
  int64_t replicas_to_aggregate = 1;
  absl::optional<int64_t> total_num_replicas;
};

// tf_slim.learning.train's arguments, by their names and in their order; docs/library.md says what becomes of each.
struct TrainOptions {
  // Null: TrainStep. A function of the program's own holds the run, as train_step_kwargs does: each step waits for the
  // call that takes it, so that a stop at step s ends the run at s, whichever workers compute, and the loss returned is
  // that of the checkpoint of s.
  TrainStepFn train_step_fn;
  // Absent: should_stop, should_log, and should_trace as the options below have them. Given: only these, with the
  // summary_writer.
  absl::optional<TrainStepKwargs> train_step_kwargs;
  // Called around each Run of the session, after the loop's own. They outlive the call. A stop that one requests ends
  // the loop after the call of the step function.
  std::vector<Hook*> hooks;
  // 0: never.
  int64_t log_every_n_steps = 1;
  // master, is_chief and what else belongs to the process: addresses, names, its stop signal. Its op, logdir,
  // write_events, init_fn and startup_delay_steps are set by what is here; its program, where functions decide about
  // the weights, is "slim: " and their names unless it has a name.
  SessionOptions session;
  // The run ends at this global step. Absent: as the train_op's configuration says.
  absl::optional<int64_t> number_of_steps;
  // A call for a run that has ended there takes one step more, as the original's does. Not for a program that is
  // started again until it ends well: each start would make other weights.
  bool one_more_step = false;
  // Default: from the seed, or a warm start. None: only a checkpoint or init_fn.
  Choice<InitOp> init_op;
  std::vector<NamedTensor> init_feed_dict;
  // Default and none: there is no local state.
  Choice<LocalInitFunction> local_init_op;
  // After init_op, when nothing was restored. Null: none.
  InitFunction init_fn;
  // Default: the variables have values. None: no check.
  Choice<ReadyFunction> ready_op;
  // Default: the loss. None: no summaries.
  Choice<SummaryFunction> summary_op;
  // 0: neither summaries, gradients' included, nor the rate of steps.
  absl::Duration save_summaries_secs = absl::Seconds(600);
  // SupervisorOptions::save_scalars_steps.
  int64_t save_scalars_steps = 0;
  // Default: the chief's events. None: no events. Given: takes the summaries, those of gradients and of workers
  // included, and no events are written (SessionOptions::summary_writer).
  Choice<SummaryWriter> summary_writer;
  // A worker begins at this global step, or at number_of_steps.
  int64_t startup_delay_steps = 0;
  // Saves with the period below and at the end, besides the run's own checkpoints, from which alone a run is resumed.
  // Needs a basename and a latest_filename of its own. Null: none. Outlives the call.
  Saver* saver = nullptr;
  // Default: checkpoint.every_seconds of the configuration, 600 s unless it is set. None and 0: the chief saves only
  // when a run begins and ends, and every checkpoint.every_steps of the configuration.
  Choice<absl::Duration> save_interval_secs;
  // Steps with the mean of R gradients. Several must agree: a run has one aggregation. The run is DETERMINISTIC, or
  // FIRST_ARRIVALS if the train_op's configuration says so. Empty: the run is asynchronous, as the original's, unless
  // that configuration chooses a policy or replicas_to_aggregate (ApplyDefaultPolicy).
  std::vector<SyncReplicas> sync_optimizer;
  // RunConfigOptions::session_config: fields of the train_op's `cluster`, such as threads and leases.
  config::v1::ClusterConfig session_config;
  SessionWrapper session_wrapper;
  // The chief: writes tf_trace-<step>.json (TrainStep) for the steps that begin at multiples of this.
  absl::optional<int64_t> trace_every_n_steps;
  // Threads that do not end within stop_grace are logged, and no error. The call returns when they have ended.
  bool ignore_live_threads = false;

  // Constants of the original.
  absl::Duration stop_grace = absl::Seconds(120);
  absl::Duration recovery_wait = absl::Seconds(30);
  // Aborted and Unavailable are followed by another session.
  RecoveryOptions recovery;
  SessionOpener open = OpenHeldSession;
};

// Runs the training loop of a chief or a worker under a Supervisor: restores or initializes, steps until it should
// stop, saves. `logdir` is where checkpoints and events go; empty: there are none. Returns the loss of the last step;
// nullopt if none was taken. A loop that holds the run begins with the steps that an earlier life has taken and not
// dealt with. Errors: InvalidArgument names the wrong argument, before anything starts; those of
// Supervisor::ManagedSession.
absl::StatusOr<absl::optional<double>> Train(const TrainOp& train_op, const std::string& logdir,
                                             TrainOptions options = {});

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_LEARNING_H_

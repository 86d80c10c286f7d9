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
#include "lockstep/config/v1/optimizer.pb.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/saver/assign_from.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/saver/saver.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/init/init_op.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/slim/train_step.h"
#include "lockstep/train/supervisor/session_manager.h"
#include "lockstep/train/supervisor/supervisor.h"

namespace lockstep::train::slim {

using train::InitOp;
// Returns the session to use in the loop instead of `session`, which outlives it. Returning null is an error.
using SessionWrapper = std::function<std::unique_ptr<Session>(Session* session)>;

// The number of gradients that are averaged in one update, and moving averages: SyncReplicasOptimizer's arguments.
// total_num_replicas is the configuration's training.first_arrivals.total_replicas. Without first_arrivals, it is
// logged and has no effect, since workers may come and go.
struct SyncReplicas {
  int64_t replicas_to_aggregate = 1;
  absl::optional<int64_t> total_num_replicas;
  // The moving averages that the chief keeps (optimizer.moving_average). If absent, those of the configuration.
  absl::optional<config::v1::OptimizerConfig::MovingAverage> variable_averages;
  // The names of the trained variables that have averages. If absent, variable_averages or the configuration decides.
  absl::optional<std::vector<std::string>> variables_to_average;
};

// The arguments of tf_slim.learning.train, with the same names. docs/library.md describes the effect of each. With
// ignore_live_threads, Train still returns only when the threads have ended.
struct TrainOptions : SupervisionOptions {
  // If null, TrainStep is used. If this function or train_step_kwargs is set, it holds the run: each step waits for the
  // call that takes it. A stop at step s therefore ends the run at s, whichever workers compute, and the returned loss
  // is that of the checkpoint of s.
  TrainStepFn train_step_fn;
  // If absent, should_stop, should_log and should_trace are set from the options below. If given, only these arguments
  // apply, together with the summary_writer.
  absl::optional<TrainStepKwargs> train_step_kwargs;
  // Called around each Run of the session, after the loop's own hooks. The hooks must outlive the call. If one requests
  // a stop, the loop ends after the current call to the step function.
  std::vector<Hook*> hooks;
  // If 0, never.
  int64_t log_every_n_steps = 1;
  // Contains master, is_chief and other options of the process, such as addresses, names and its stop signal. The
  // options here set its op, logdir, write_events, init_fn and startup_delay_steps. If its `program` is empty and there
  // are functions that influence the weights, `program` is set to "slim: " and their names.
  SessionOptions session;
  // The global step at which the run ends. If absent, the train_op's configuration determines it.
  absl::optional<int64_t> number_of_steps;
  // If true, a call for a run that has already ended at number_of_steps or later takes one more step, as the original
  // does. Do not use this in a program that is restarted until it ends successfully, because each start would change
  // the weights.
  bool one_more_step = false;
  // Default: initializes from the seed or a warm start. None: only a checkpoint or init_fn initializes.
  Choice<InitOp> init_op;
  std::vector<NamedTensor> init_feed_dict;
  // Default and None: there is no local state.
  Choice<LocalInitFunction> local_init_op;
  // Called after init_op if nothing was restored. May be null.
  InitFunction init_fn;
  // Default: checks that the variables have values. None: no check.
  Choice<ReadyFunction> ready_op;
  // Default: the loss. None: no summaries.
  Choice<SummaryFunction> summary_op;
  // If 0, writes neither summaries (including those of gradients) nor the step rate.
  absl::Duration save_summaries_secs = absl::Seconds(600);
  // SupervisorOptions::save_scalars_steps.
  int64_t save_scalars_steps = 0;
  // Default: the chief's events. None: no events. If given, receives the summaries, including those of gradients and of
  // workers, and no events are written (SessionOptions::summary_writer).
  Choice<SummaryWriter> summary_writer;
  // The global step at which a worker begins, unless number_of_steps is smaller.
  int64_t startup_delay_steps = 0;
  // If set, also saves every save_interval_secs and at the end, in addition to the run's own checkpoints. A run resumes
  // only from its own checkpoints. The saver needs its own basename and latest_filename. May be null. Must outlive the
  // call.
  Saver* saver = nullptr;
  // Default: checkpoint.every_seconds of the configuration, or 600 s if that is not set. None and 0: the chief saves
  // only when a run begins and ends, and every checkpoint.every_steps of the configuration.
  Choice<absl::Duration> save_interval_secs;
  // If not empty, each step uses the mean of replicas_to_aggregate gradients. All elements must agree, because a run
  // has only one aggregation. The run is DETERMINISTIC, or FIRST_ARRIVALS if the train_op's configuration says so. If
  // empty, the run is asynchronous like the original's, unless that configuration chooses a policy or
  // replicas_to_aggregate (ApplyDefaultPolicy).
  std::vector<SyncReplicas> sync_optimizer;
  // Fields that override those of the train_op's `cluster`, such as threads and leases, as in
  // RunConfigOptions::session_config.
  config::v1::ClusterConfig session_config;
  SessionWrapper session_wrapper;
  // Number of steps between traces: the chief writes tf_trace-<step>.json (TrainStep) for each step that begins at a
  // multiple of this number.
  absl::optional<int64_t> trace_every_n_steps;
};

// Runs the training loop of a chief or a worker under a Supervisor: restores or initializes, takes steps until a stop
// is requested or the run is over, and saves. `logdir` is the directory for checkpoints and events; if empty, none are
// written. Returns the loss of the last step, or nullopt if none was taken. A loop that holds the run begins with the
// steps that an earlier chief took but did not finish processing. Errors: InvalidArgument naming a wrong argument,
// before anything starts; those of Supervisor::ManagedSession.
absl::StatusOr<absl::optional<double>> Train(const TrainOp& train_op, const std::string& logdir,
                                             TrainOptions options = {});

}  // namespace lockstep::train::slim

#endif  // LOCKSTEP_TRAIN_SLIM_LEARNING_H_

#ifndef LOCKSTEP_TRAIN_GRAPH_ACTIONS_TRAIN_H_
#define LOCKSTEP_TRAIN_GRAPH_ACTIONS_TRAIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/train/hooks/base/hook.h"
#include "lockstep/train/hooks/monitors/monitor.h"
#include "lockstep/train/saver/named_tensor.h"
#include "lockstep/train/session/choice.h"
#include "lockstep/train/session/init/init_op.h"
#include "lockstep/train/session/recovery_policy.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep::train::graph_actions {

// Returns the batch for a slot (0 to replicas_to_aggregate - 1) of the update that starts at global step `step`. The
// batch must depend only on `step` and `slot`, and must be the same in every process. Called from several threads.
// OutOfRange means that the input has ended; the run ends before the first step that lacks a batch. In an asynchronous
// or FIRST_ARRIVALS run, `step` is a position in an input stream, `slot` is the stream, and the run ends when its last
// stream ends.
using FeedFunction = std::function<absl::StatusOr<Batch>(int64_t step, int64_t slot)>;

struct TrainOptions {
  // This process's role (in TensorFlow, supervisor_is_chief and supervisor_master), the directory of the chief's
  // checkpoints and events (logdir; in TensorFlow, output_dir), the model and its training (op; in TensorFlow, train_op
  // with its loss and global step), and init_fn. The run is asynchronous unless the configuration chooses a policy or
  // replicas_to_aggregate (ApplyDefaultPolicy). The options below set the configuration's checkpoint.keep,
  // summary.every_steps, training.skip_non_finite and end_on_non_finite; `steps` or `max_steps` sets the length of the
  // run.
  SessionOptions session;
  // See init_op and init_feed_dict of SupervisorOptions: default, None or a function that returns initial values.
  Choice<InitOp> init_op;
  std::vector<NamedTensor> init_feed_dict;
  // Returns the batches that replace those of the configured input, which then only specifies the examples. If null,
  // uses the input's batches.
  FeedFunction feed_fn;
  // On the chief, the number of steps to add to those that the run has already taken. After a restart, they are not
  // added again unless the run has ended successfully.
  absl::optional<int64_t> steps;
  // The global step at which the run ends, on the chief. If neither this nor `steps` is set, training.steps,
  // additional_steps or unbounded applies.
  absl::optional<int64_t> max_steps;
  // If true, a step with a non-finite loss, gradient or update value fails the run. If false, the step counts but
  // changes nothing else, and a warning is logged. The chief's value applies.
  bool fail_on_nan_loss = true;
  // The monitors; they must outlive the call. Without any, the chief logs the loss every 100 steps and writes it as a
  // summary. On a worker, only monitors that run on all workers are called, and they are not notified of the end.
  std::vector<Monitor*> monitors;
  // Called after the monitors; on a worker, around the blocks that it computes. They must outlive the call. If hooks
  // stop the run or make assignments, session.program must have a name.
  std::vector<Hook*> hooks;
  // The number of steps between two loss log lines. The last step is always logged.
  int64_t log_every_steps = 10;
  // The time between two checkpoints of the chief. Default: checkpoint.every_seconds of the configuration, or 600 s if
  // that is not set. With None or 0, saves only at the start, at the end, and every checkpoint.every_steps of the
  // configuration.
  Choice<absl::Duration> save_model_period;
  // The number of newest checkpoints that the chief keeps. None or 0 keeps all.
  absl::optional<int64_t> keep_checkpoint_max = 5;
  // The number of steps between two loss summaries, written by a chief without monitors. 0 disables them.
  int64_t save_summaries_steps = 100;
  // The maximum time that a worker waits for its chief.
  absl::Duration max_wait = absl::Seconds(7200);
  RecoveryOptions recovery;
  // Receives the loss log lines. If null, they are logged.
  std::function<void(const std::string& line)> log;
};

// Trains until the run is over: after its last step, at the end of the input, or when a monitor stops it. On the chief,
// the monitors see each global step, in order; on a worker, they see the blocks that it computes. After Aborted or
// Unavailable, another session is opened, and Begin of the monitors is not called again. Returns the loss of the last
// step, or nullopt if the run was already over and no step ran. After an error, the chief still saves its last step;
// after a non-finite loss, it saves the last finite one. Errors: InvalidArgument naming a wrong option, before anything
// starts; InvalidArgument for a non-finite loss; Cancelled if the process was stopped; those of monitors and sessions.
absl::StatusOr<absl::optional<double>> Train(TrainOptions options);

}  // namespace lockstep::train::graph_actions

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_TRAIN_H_

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
#include "lockstep/train/session/held_session.h"
#include "lockstep/train/session/init/init_op.h"
#include "lockstep/train/session/recovery_policy.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/worker/data/batch.h"

namespace lockstep::train::graph_actions {

// The batch of a slot (0 to replicas_to_aggregate - 1) of the update from global step `step`: a function of the two
// alone, the same in every process, called by several threads. OutOfRange: the input has ended, and the run ends before
// the first step that lacks a batch. In a run that is asynchronous, or FIRST_ARRIVALS, they are the position in an
// input stream and the stream, and the run ends with its last stream.
using FeedFunction = std::function<absl::StatusOr<Batch>(int64_t step, int64_t slot)>;

struct TrainOptions {
  // What this process is (supervisor_is_chief, supervisor_master), where the chief keeps checkpoints and events
  // (logdir: output_dir), what is trained (op: train_op with its loss and global step), and init_fn. The run is
  // asynchronous unless the configuration chooses a policy or replicas_to_aggregate (ApplyDefaultPolicy). Of the
  // configuration, checkpoint.keep, summary.every_steps, training.skip_non_finite and
  // end_on_non_finite are set by what follows, and its length by steps or max_steps.
  SessionOptions session;
  // SupervisorOptions::init_op and init_feed_dict: default, None or a function that returns initial values.
  Choice<InitOp> init_op;
  std::vector<NamedTensor> init_feed_dict;
  // In place of the configured input's batches, which say what examples look like. None: those.
  FeedFunction feed_fn;
  // The chief: so many steps more than the run has. Counted once for all restarts, until a run has ended well.
  absl::optional<int64_t> steps;
  // The chief: until this global step. Neither: as training.steps, additional_steps or unbounded has it.
  absl::optional<int64_t> max_steps;
  // False: a step whose loss (gradient, update value) is not finite counts and changes nothing else, with a warning.
  // True: it fails the run. The chief's decides.
  bool fail_on_nan_loss = true;
  // They outlive the call. None: the chief logs the loss every 100 steps and writes it as a summary. On a worker only
  // those that run on all workers are called, and not told of the end.
  std::vector<Monitor*> monitors;
  // They outlive the call, and are called after the monitors: on a worker around the blocks that it computes. With
  // hooks that stop the run or assign, session.program has a name.
  std::vector<Hook*> hooks;
  // Steps from one line about the loss to the next; the last step has one, too.
  int64_t log_every_steps = 10;
  // The chief: time between checkpoints. Default: checkpoint.every_seconds of the configuration, 600 s unless it is
  // set. None and 0: only at the start and at the end, and every checkpoint.every_steps of the configuration.
  Choice<absl::Duration> save_model_period;
  // The chief: the newest so many checkpoints stay; none and 0 keep all.
  absl::optional<int64_t> keep_checkpoint_max = 5;
  // The chief without monitors: steps between two summaries of the loss; 0: none.
  int64_t save_summaries_steps = 100;
  // A worker: how long its chief is waited for.
  absl::Duration max_wait = absl::Seconds(7200);
  RecoveryOptions recovery;
  SessionOpener open = OpenHeldSession;
  // Where the lines about the loss go. Empty: the log.
  std::function<void(const std::string& line)> log;
};

// Trains until the run is over: its last step, the end of the input, a monitor's stop. On the chief the monitors see
// each global step, in order; on a worker the blocks that it computes. Aborted and Unavailable are followed by another
// session, to which the monitors' Begin is not repeated. Returns the loss of the last step, nullopt when none was run,
// because the run was over already. After an error, too, the chief's last step is saved; after a loss that is not
// finite, the last finite one. Errors: InvalidArgument names the option that is wrong, before anything starts; a loss
// that is not finite is InvalidArgument; Cancelled when the process was told to stop; those of monitors and sessions.
absl::StatusOr<absl::optional<double>> Train(TrainOptions options);

}  // namespace lockstep::train::graph_actions

#endif  // LOCKSTEP_TRAIN_GRAPH_ACTIONS_TRAIN_H_

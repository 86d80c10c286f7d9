#ifndef LOCKSTEP_TRAIN_SLIM_TRAINING_H_
#define LOCKSTEP_TRAIN_SLIM_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/train/monitored/monitored_training_session.h"
#include "lockstep/train/session/choice.h"

namespace lockstep::train::slim::training {

// The arguments of tf_slim.training.train (tf.contrib.training.train), with the same names.
struct TrainOptions {
  // Contains master, is_chief and the options of `config`. Its op and logdir are replaced by the arguments of Train.
  SessionOptions session;
  Scaffold scaffold;
  // The hooks must outlive the call. chief_only_hooks are called first.
  std::vector<Hook*> hooks;
  std::vector<Hook*> chief_only_hooks;
  // Default: checkpoint.every_seconds of the configuration, or 600 s if that is not set. None and 0: the chief saves
  // only when a run begins and ends, and every checkpoint.every_steps of the configuration.
  Choice<absl::Duration> save_checkpoint_secs;
  // Number of steps between summaries. None and 0: no summaries.
  Choice<int64_t> save_summaries_steps = int64_t{100};
  absl::Duration max_wait_secs = absl::Seconds(7200);
};

// Runs the train_op in a MonitoredTrainingSession until a hook requests a stop, the run is over or the input ends.
// Returns the last loss, or nullopt if no step ran. Errors: InvalidArgument on a chief without a logdir, unless neither
// checkpoints nor summaries are requested; those of MonitoredSession.
absl::StatusOr<absl::optional<double>> Train(const TrainOp& train_op, const std::string& logdir,
                                             TrainOptions options = {});

}  // namespace lockstep::train::slim::training

#endif  // LOCKSTEP_TRAIN_SLIM_TRAINING_H_

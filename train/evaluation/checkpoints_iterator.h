#ifndef LOCKSTEP_TRAIN_EVALUATION_CHECKPOINTS_ITERATOR_H_
#define LOCKSTEP_TRAIN_EVALUATION_CHECKPOINTS_ITERATOR_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep::train {

// How a directory is watched for checkpoints.
struct CheckpointWait {
  // Time between two looks at the directory, positive.
  absl::Duration poll_interval = absl::Seconds(1);
  // How long to wait for a checkpoint. The wait is given up as soon as another look would come too late.
  absl::Duration timeout = absl::InfiniteDuration();
  // Ends a wait from any thread; null: nothing does. These three outlive whoever waits.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

// Waits until the newest checkpoint of a directory is another than `last` (empty: until there is one), and returns its
// prefix. nullopt: the timeout has passed, or a stop was requested. A state file that cannot be read is logged, and
// looked at again.
absl::optional<std::string> WaitForNewCheckpoint(const std::string& directory, absl::string_view last = "",
                                                 const CheckpointWait& wait = CheckpointWait());

struct CheckpointsIteratorOptions {
  CheckpointWait wait;
  // Checkpoints are handed out at least this far apart; of those in between only the newest is handed out.
  absl::Duration min_interval = absl::ZeroDuration();
  // Called after each timeout: true ends the watch, false continues it. Null: the first timeout ends it.
  std::function<bool()> timeout_fn;
};

// Hands out the checkpoints of a directory as they appear, for evaluation during training: checkpoints_iterator of
// tf.contrib.training. For one thread.
//
//   CheckpointsIterator checkpoints(logdir, options);
//   while (const auto prefix = checkpoints.Next()) { ... }
class CheckpointsIterator {
 public:
  explicit CheckpointsIterator(std::string directory, CheckpointsIteratorOptions options = {});

  // Waits until the newest checkpoint differs from the last one handed out; returns its prefix.
  // nullopt: the watch has ended, by a timeout or a stop.
  absl::optional<std::string> Next();

 private:
  const std::string directory_;
  const CheckpointsIteratorOptions options_;
  std::string last_;
  absl::Time next_start_ = absl::InfinitePast();
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_CHECKPOINTS_ITERATOR_H_

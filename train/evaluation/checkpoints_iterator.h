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

// Options for watching a directory for checkpoints.
struct CheckpointWait {
  // The time between two checks of the directory. Must be positive.
  absl::Duration poll_interval = absl::Seconds(1);
  // Maximum time to wait for a checkpoint. The wait ends as soon as the next check would come after this time.
  absl::Duration timeout = absl::InfiniteDuration();
  // Lets any thread end the wait. May be null. `stop`, `clock` and `fs` must outlive the wait.
  StopSignal* stop = nullptr;
  Clock* clock = Clock::Real();
  FileSystem* fs = FileSystem::Real();
};

// Waits until the newest checkpoint of a directory differs from `last` (if empty, until there is one), and returns its
// prefix. Returns nullopt after the timeout or a requested stop. If the state file is unreadable, logs an error and
// tries again.
absl::optional<std::string> WaitForNewCheckpoint(const std::string& directory, absl::string_view last = "",
                                                 const CheckpointWait& wait = CheckpointWait());

struct CheckpointsIteratorOptions {
  CheckpointWait wait;
  // The minimum time between two returned checkpoints. Of the checkpoints in between, only the newest is returned.
  absl::Duration min_interval = absl::ZeroDuration();
  // Called after each timeout. Returns true to end the watch, false to continue it. If null, the first timeout ends it.
  std::function<bool()> timeout_fn;
};

// An iterator over the checkpoints of a directory as they appear, for evaluation during training, like
// checkpoints_iterator in tf.contrib.training. Must be used by only one thread.
//
//   CheckpointsIterator checkpoints(logdir, options);
//   while (const auto prefix = checkpoints.Next()) { ... }
class CheckpointsIterator {
 public:
  explicit CheckpointsIterator(std::string directory, CheckpointsIteratorOptions options = {});

  // Waits until the newest checkpoint differs from the last one returned, and returns its prefix. Returns nullopt if a
  // timeout or a stop has ended the watch.
  absl::optional<std::string> Next();

 private:
  const std::string directory_;
  const CheckpointsIteratorOptions options_;
  std::string last_;
  absl::Time next_start_ = absl::InfinitePast();
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_EVALUATION_CHECKPOINTS_ITERATOR_H_

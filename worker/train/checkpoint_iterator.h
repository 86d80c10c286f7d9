#ifndef LOCKSTEP_WORKER_TRAIN_CHECKPOINT_ITERATOR_H_
#define LOCKSTEP_WORKER_TRAIN_CHECKPOINT_ITERATOR_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/io/file_system.h"

namespace lockstep {

struct CheckpointIteratorOptions {
  // Must outlive the iterator.
  Clock* clock = Clock::Real();
  // Time between two looks at the directory, positive.
  absl::Duration poll_interval = absl::Seconds(1);
  // Checkpoints are handed out at least this far apart; those that come between are passed over but for the newest.
  absl::Duration min_interval = absl::ZeroDuration();
  // How long Next waits for a checkpoint. It gives up as soon as another look would come too late.
  absl::Duration timeout = absl::InfiniteDuration();
  // Asked after each timeout: true ends the watch, false goes on waiting. Null: the first timeout ends it.
  std::function<bool()> timed_out;
};

// Hands out the checkpoints of a logdir as they appear, for evaluation beside the training. Follows
// checkpoints_iterator and wait_for_new_checkpoint of tf.contrib.training. One thread calls Next and
// WaitForNewCheckpoint; Stop may come from any thread.
class CheckpointIterator {
 public:
  // `fs` must outlive the iterator.
  CheckpointIterator(FileSystem* fs, std::string directory, CheckpointIteratorOptions options);

  // The prefix of the newest checkpoint, when it is another than the last one handed out; waits for it.
  // nullopt: the watch has ended, by timeout or Stop.
  absl::optional<std::string> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until the newest checkpoint is another than `last` (empty: until there is one). nullopt: timeout or Stop.
  absl::optional<std::string> WaitForNewCheckpoint(absl::string_view last) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the watch; wakes who waits.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // False when stopped.
  bool SleepUntil(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);

  FileSystem* const fs_;
  const std::string directory_;
  const CheckpointIteratorOptions options_;

  // Of the thread that calls Next.
  std::string last_;
  absl::Time next_start_ = absl::InfinitePast();

  mutable Mutex mutex_;
  CondVar stop_requested_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_CHECKPOINT_ITERATOR_H_

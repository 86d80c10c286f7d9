#ifndef LOCKSTEP_TRAIN_EVALUATION_BACKGROUND_EVALUATION_H_
#define LOCKSTEP_TRAIN_EVALUATION_BACKGROUND_EVALUATION_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/periodic_task.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/train/evaluation/run_watcher.h"

namespace lockstep {

// An evaluation of a run's checkpoints during training, every evaluation.every_steps steps, in a separate thread. Does
// nothing if every_steps is 0. Reports and skips damaged checkpoints. The destructor waits for an evaluation in
// progress unless it was cancelled. Thread-safe.
class BackgroundEvaluation {
 public:
  // `fs` and `clock` must outlive this object. If `period` is zero or negative, there is no thread, and the owner must
  // call RunOnce.
  BackgroundEvaluation(FileSystem* fs, Clock* clock, const config::v1::RunSpec& config, const std::string& logdir,
                       absl::Duration period);

  // Returns the messages since the last call, one per line.
  std::vector<std::string> TakeLines() ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops an evaluation in progress at its next batch and prevents further ones. Does not block.
  void Cancel() { cancelled_ = true; }

  // Checks once for a checkpoint to evaluate. Does nothing after an error in the data or the model.
  void RunOnce() { task_.RunOnce(); }

 private:
  void Look() ABSL_LOCKS_EXCLUDED(mutex_);
  void Say(std::string line) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<bool> cancelled_{false};
  RunWatcher watcher_;
  // Accessed only by the evaluation thread.
  bool done_ = false;
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  PeriodicTask task_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_BACKGROUND_EVALUATION_H_

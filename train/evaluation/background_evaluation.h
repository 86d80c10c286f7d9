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

// Evaluates a run's checkpoints while it trains, every evaluation.every_steps steps, in a thread of its own; idle when
// that is 0. A damaged checkpoint is named and skipped. Destroying it waits for an evaluation that is under
// way, unless it was cancelled. Thread-safe.
class BackgroundEvaluation {
 public:
  // `fs` and `clock` must outlive it. With a period of zero or less the owner calls RunOnce.
  BackgroundEvaluation(FileSystem* fs, Clock* clock, const config::v1::RunSpec& config, const std::string& logdir,
                       absl::Duration period);

  // The messages since the last call, a line each.
  std::vector<std::string> TakeLines() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends an evaluation that is under way, at its next batch; there are no more. Does not block.
  void Cancel() { cancelled_ = true; }

  // Looks once for a checkpoint to evaluate. After an error of the data or the model no more.
  void RunOnce() { task_.RunOnce(); }

 private:
  void Look() ABSL_LOCKS_EXCLUDED(mutex_);
  void Say(std::string line) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<bool> cancelled_{false};
  RunWatcher watcher_;
  // Accessed only by the thread.
  bool done_ = false;
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  PeriodicTask task_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_BACKGROUND_EVALUATION_H_

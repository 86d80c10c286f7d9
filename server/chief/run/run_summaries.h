#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_SUMMARIES_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_SUMMARIES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/summary/event_queue.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// What a chief writes into its event file: scalars of the steps, and when the run began, was saved and ended. The tags
// are those of TensorFlow's training loops (contrib.layers.optimize_loss, StepCounterHook, the hooks of TPUEstimator):
// loss, learning_rate, global_norm/gradient_norm, global_step/sec, examples/sec; and update_ratio, the norm of the
// update by that of the weights. Never blocks on files, but for Flush and OnEnd.
// After OnEnd nothing is written. Thread-safe.
class RunSummaries {
 public:
  struct Options {
    Clock* clock = nullptr;
    // Scalars are written at every multiple of this, and at the last step; 0: never.
    int64_t every_steps = 0;
    // The scalars include loss and global_step/sec. False: the program that follows the run writes those.
    bool writes_loss = true;
    // For the rate of examples; 0: it is not written.
    int64_t examples_per_step = 0;
  };

  // The run continues at `step`. Without `events` nothing is written.
  RunSummaries(const Options& options, int64_t step, std::unique_ptr<EventQueue> events);

  // At which multiples of steps it can write an update's norms; 0: never.
  int64_t norms_every_steps() const { return events_ == nullptr ? 0 : options_.every_steps; }

  // TensorBoard drops what earlier event files have from the step of START on. A resumed run therefore names the first
  // step that it makes again, step + 1: the points of `step` itself stay valid.
  void OnStart(int64_t step, bool resumed = false);
  // An update.
  struct Update {
    int64_t step = 0;      // the global step after it
    double mean_loss = 0;  // of the slots
    float learning_rate = 0;
    absl::optional<UpdateNorms> norms;
    bool last = false;  // the run ends there
  };
  void OnCommit(const Update& update) ABSL_LOCKS_EXCLUDED(mutex_);
  // From `step` on, which was committed last.
  void SetExamplesPerStep(int64_t examples, int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Errors, after which the summary is dropped: ResourceExhausted if too much waits for the disk; OutOfRange after
  // OnEnd.
  absl::Status Add(v1::Summary summary, int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnSaved(int64_t step, const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes what waits, for five seconds at most. What the disk has not taken by then may be lost; that is logged.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  // The last record. Writes it and what waits, as Flush does, but waits for no disk that was late before. Once.
  void OnEnd() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Per second, since the last call; 0 when that was at the same instant.
  struct Rates {
    double steps = 0;
    double examples = 0;
  };
  Rates TakeRates(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountExamples(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<EventQueue> events_;
  Mutex mutex_;
  absl::Time rate_time_ ABSL_GUARDED_BY(mutex_);
  int64_t rate_step_ ABSL_GUARDED_BY(mutex_);
  int64_t examples_per_step_ ABSL_GUARDED_BY(mutex_);
  // Of the steps from rate_step_ to examples_step_.
  int64_t examples_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t examples_step_ ABSL_GUARDED_BY(mutex_);
  bool disk_is_late_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_SUMMARIES_H_

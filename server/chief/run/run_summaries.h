#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_SUMMARIES_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_SUMMARIES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/summary/event_queue.h"
#include "lockstep/server/ps/slot_metrics.h"
#include "lockstep/server/ps/update_norms.h"
#include "lockstep/v1/event.pb.h"

namespace lockstep {

// The writer of the chief's event file, which holds the scalars of the steps and records when the run began, was saved
// and ended. The tags match those of TensorFlow's training loops (contrib.layers.optimize_loss, StepCounterHook, the
// hooks of TPUEstimator): loss, learning_rate, global_norm/gradient_norm, global_step/sec, examples/sec. There is also
// update_ratio, the norm of the update divided by the norm of the weights, and the slots' metrics appear under their
// own names. Never blocks on files, except in Flush and OnEnd. Writes nothing after OnEnd. Thread-safe.
class RunSummaries {
 public:
  struct Options {
    Clock* clock = nullptr;
    // Scalars are written at every multiple of this number of steps, and at the last step. If 0, they are never
    // written.
    int64_t every_steps = 0;
    // If true, the scalars include loss and global_step/sec. If false, the program that follows the run writes them.
    bool writes_loss = true;
    // Number of examples per step, from which examples/sec is computed. If 0, that rate is not written.
    int64_t examples_per_step = 0;
  };

  // The run continues at `step`. If `events` is null, nothing is written.
  RunSummaries(const Options& options, int64_t step, std::unique_ptr<EventQueue> events);

  // Update norms and contribution counts can be written at multiples of this step; 0 means never.
  int64_t norms_every_steps() const { return events_ == nullptr ? 0 : options_.every_steps; }

  // Writes START. From the step of START on, TensorBoard drops the points of earlier event files. A resumed run
  // therefore writes step + 1, the first step that it repeats, because the points of `step` itself remain valid.
  void OnStart(int64_t step, bool resumed = false);
  // An update.
  struct Update {
    int64_t step = 0;      // the global step after it
    double mean_loss = 0;  // over the slots
    float learning_rate = 0;
    absl::optional<UpdateNorms> norms;
    bool last = false;  // the run ends at `step`
    std::vector<StepMetric> metrics;
  };
  void OnCommit(const Update& update) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets the number of examples per step for the steps after `step`, the last committed step.
  void SetExamplesPerStep(int64_t examples, int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Errors: ResourceExhausted if too many summaries wait for the disk; OutOfRange after OnEnd. In both cases the
  // summary is dropped.
  absl::Status Add(v1::Summary summary, int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnSaved(int64_t step, const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits up to five seconds for pending summaries to be written. If the disk has not stored them by then, logs that
  // they may be lost.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the last record and waits for pending summaries like Flush, but does not wait if an earlier Flush timed out.
  // Only the first call has an effect.
  void OnEnd() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Rates per second since the last call to TakeRates; 0 if that was at the same instant.
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
  // The number of examples in the steps from rate_step_ to examples_step_.
  int64_t examples_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t examples_step_ ABSL_GUARDED_BY(mutex_);
  bool disk_is_late_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_SUMMARIES_H_

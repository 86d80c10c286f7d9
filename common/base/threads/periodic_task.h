#ifndef LOCKSTEP_COMMON_BASE_THREADS_PERIODIC_TASK_H_
#define LOCKSTEP_COMMON_BASE_THREADS_PERIODIC_TASK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep {

// Calls a function repeatedly in its own thread, on a fixed schedule: at start (or one period later), then at start + k
// * period, without drift. Missed calls are skipped. If the period is zero or less, there is no thread, and the owner
// of the task calls RunOnce. The destructor waits for the call in progress. Thread-safe.
class PeriodicTask {
 public:
  struct Options {
    Clock* clock = nullptr;  // must outlive the task
    absl::Duration period;
    // If true, the first call is immediate, as in TensorFlow's timers; otherwise it comes after one period.
    bool first_at_once = true;
    Executor* executor = Executor::Threads();  // must outlive the task
    std::string name = "periodic";             // of the thread
  };

  PeriodicTask(const Options& options, std::function<void()> function);
  ~PeriodicTask();

  // Calls the function in the caller's thread, never at the same time as the task's own thread.
  void RunOnce() ABSL_LOCKS_EXCLUDED(run_mutex_);

  // Prevents further calls by the task's own thread and waits for the call in progress. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_, run_mutex_);

  const Options options_;
  const std::function<void()> function_;
  Mutex run_mutex_;  // held while the function runs
  Mutex mutex_;
  CondVar stop_requested_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;  // null without a period
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_THREADS_PERIODIC_TASK_H_

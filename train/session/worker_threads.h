#ifndef LOCKSTEP_TRAIN_SESSION_WORKER_THREADS_H_
#define LOCKSTEP_TRAIN_SESSION_WORKER_THREADS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep::train {

// How long a process that was told to stop, and has saved, waits for a worker of its own that hangs in a block.
constexpr absl::Duration kHungWorkerLimit = absl::Seconds(2);

// The threads in which workers of this process run. Life: Start each, ask the workers to end, AwaitEnd; destroying it
// joins the threads. For one thread.
class WorkerThreads {
 public:
  // `clock` must outlive this.
  explicit WorkerThreads(Clock* clock) : clock_(clock) {}

  void Start(std::string name, std::function<void()> body) ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until all bodies have returned, for at most `limit`. Returns whether they have.
  bool AwaitEnd(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);
  void Join() { threads_.clear(); }

 private:
  void OnEnd() ABSL_LOCKS_EXCLUDED(mutex_);

  Clock* const clock_;
  Mutex mutex_;
  CondVar ended_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_WORKER_THREADS_H_

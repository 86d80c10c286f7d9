#ifndef LOCKSTEP_TRAIN_SESSION_LOCAL_WORKERS_H_
#define LOCKSTEP_TRAIN_SESSION_LOCAL_WORKERS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/worker/session/training_worker.h"

namespace lockstep::train {

// The maximum time that a stopped process, having saved, waits for a local worker that hangs in a block.
constexpr absl::Duration kHungWorkerLimit = absl::Seconds(2);

// Returns the factory for a worker's model and input, as described by `options`.
WorkloadFactory WorkloadFactoryOf(const SessionOptions& options);

// The workers in the chief's process, each in its own thread. Life cycle: construct, StopWithin, destroy. The
// destructor waits for all workers. Not thread-safe.
class LocalWorkers {
 public:
  struct Options {
    Clock* clock = Clock::Real();
    int workers = 1;
    // Returns the name of a worker.
    std::function<std::string(int index)> name;
    // Called in the thread of each worker.
    WorkloadFactory make_workload;
  };

  // Starts the workers. `client` must outlive this object. Calls `on_failure` in the thread of a worker that cannot
  // continue.
  LocalWorkers(const Options& options, ChiefClient* client, std::function<void(absl::Status)> on_failure);
  ~LocalWorkers();

  // Stops the running workers and waits up to `limit` for all of them. Returns false if one is still running; it may
  // hang in a block.
  bool StopWithin(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(TrainingWorker* worker, const std::function<void(absl::Status)>& on_failure) ABSL_LOCKS_EXCLUDED(mutex_);

  Clock* const clock_;
  std::vector<std::unique_ptr<TrainingWorker>> workers_;
  Mutex mutex_;
  CondVar ended_;
  int running_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_LOCAL_WORKERS_H_

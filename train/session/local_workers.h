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

// The longest time that a stopped process, after it has saved, waits for a local worker that hangs in a block.
constexpr absl::Duration kHungWorkerLimit = absl::Seconds(2);

// Returns the factory of a worker's model and input, as `options` describe them.
WorkloadFactory WorkloadFactoryOf(const SessionOptions& options);

// The workers of the chief's process, each in a thread. Life: construct, StopWithin, destroy, which waits for all.
// Not thread-safe.
class LocalWorkers {
 public:
  // Starts SessionOptions::local_workers workers. `name` returns the name of each; `client` must outlive this. Calls
  // `on_failure` in the thread of a worker that cannot continue.
  LocalWorkers(const SessionOptions& options, const std::function<std::string(int index)>& name, ChiefClient* client,
               std::function<void(absl::Status)> on_failure);
  ~LocalWorkers();

  // Stops the running workers and waits up to `limit` for all. Returns false if one still runs: it may hang in a block.
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

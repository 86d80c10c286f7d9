#ifndef LOCKSTEP_TRAIN_SESSION_LOCAL_WORKERS_H_
#define LOCKSTEP_TRAIN_SESSION_LOCAL_WORKERS_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/train/session/session_options.h"
#include "lockstep/train/session/worker_threads.h"
#include "lockstep/worker/session/training_worker.h"

namespace lockstep::train {

// Model and input as `options` describe them, for a worker.
WorkloadFactory WorkloadFactoryOf(const SessionOptions& options);

// The workers of the chief's process, each in a thread. Life: construct, StopWithin, destroy,
// which waits for all. Not thread-safe.
class LocalWorkers {
 public:
  // `client` must outlive this. `on_failure` is called by a worker's thread that cannot go on.
  LocalWorkers(const SessionOptions& options, ChiefClient* client, std::function<void(absl::Status)> on_failure);
  ~LocalWorkers();

  // Ends those that have not ended by themselves, and waits for all, for at most `limit`. Returns whether all have
  // ended: one may hang in a block.
  bool StopWithin(absl::Duration limit);

 private:
  std::vector<std::unique_ptr<TrainingWorker>> workers_;
  WorkerThreads threads_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SESSION_LOCAL_WORKERS_H_

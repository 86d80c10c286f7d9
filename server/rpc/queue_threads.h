#ifndef LOCKSTEP_SERVER_RPC_QUEUE_THREADS_H_
#define LOCKSTEP_SERVER_RPC_QUEUE_THREADS_H_

#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "grpcpp/completion_queue.h"

namespace lockstep {

// The threads that handle the events (QueueEvent) of a completion queue. One of them waits for events; it handles
// the short ones itself and goes on waiting, and passes the waiting on to another before it handles a long one.
// Two threads that wait side by side would wake each other at every event: that made the smallest step 91 us, not 66.
// Life: the threads end when the queue was shut down and is empty; the destructor waits for that.
class QueueThreads {
 public:
  // `queue` must outlive this. `threads` is at least 1.
  QueueThreads(grpc::CompletionQueue* queue, int threads);
  ~QueueThreads();

 private:
  void Loop();
  void BeginWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndWaiting() ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CompletionQueue* const queue_;
  Mutex mutex_;
  CondVar nobody_waits_;
  bool somebody_waits_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_QUEUE_THREADS_H_

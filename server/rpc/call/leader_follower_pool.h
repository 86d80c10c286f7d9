#ifndef LOCKSTEP_SERVER_RPC_CALL_LEADER_FOLLOWER_POOL_H_
#define LOCKSTEP_SERVER_RPC_CALL_LEADER_FOLLOWER_POOL_H_

#include <memory>
#include <vector>

#include "grpcpp/completion_queue.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep {

// The threads that handle the events (CompletionTag) of a completion queue, in the Leader/Followers pattern. Only the
// leader waits for events: it handles short ones itself and keeps waiting, and promotes a follower before it handles a
// long one. If two threads waited at the same time, they would wake each other at every event, and the smallest step
// would take 91 us instead of 66. The threads end when the queue has been shut down and is empty; the destructor waits
// for that.
class LeaderFollowerPool {
 public:
  // `queue` must outlive this object. `threads` is at least 1.
  LeaderFollowerPool(grpc::CompletionQueue* queue, int threads, Executor* executor = Executor::Threads());

 private:
  void Loop();
  void BecomeLeader() ABSL_LOCKS_EXCLUDED(mutex_);
  void PromoteFollower() ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::CompletionQueue* const queue_;
  Mutex mutex_;
  CondVar leader_left_;
  bool has_leader_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Thread>> threads_;  // constant after construction
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_CALL_LEADER_FOLLOWER_POOL_H_

#include "lockstep/server/rpc/call/leader_follower_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lockstep/server/rpc/call/completion_tag.h"

namespace lockstep {

LeaderFollowerPool::LeaderFollowerPool(grpc::CompletionQueue* queue, int threads, Executor* executor) : queue_(queue) {
  for (int i = 0; i < std::max(1, threads); ++i) {
    threads_.push_back(executor->Start(absl::StrCat("step-", i), [this] { Loop(); }));
  }
}

void LeaderFollowerPool::BecomeLeader() {
  MutexLock lock(&mutex_);
  while (has_leader_) leader_left_.Wait(&mutex_);
  has_leader_ = true;
}

void LeaderFollowerPool::PromoteFollower() {
  MutexLock lock(&mutex_);
  has_leader_ = false;
  leader_left_.Signal();
}

void LeaderFollowerPool::Loop() {
  void* tag;
  bool ok;
  BecomeLeader();
  while (queue_->Next(&tag, &ok)) {
    CompletionTag* const event = static_cast<CompletionTag*>(tag);
    const bool is_long = event->IsLong();
    if (is_long) PromoteFollower();
    event->OnEvent(ok);
    if (is_long) BecomeLeader();
  }
  PromoteFollower();
}

}  // namespace lockstep

#include "lockstep/train/session/worker_threads.h"

#include <utility>

namespace lockstep::train {

void WorkerThreads::Start(std::string name, std::function<void()> body) {
  {
    MutexLock lock(&mutex_);
    ++running_;
  }
  threads_.push_back(Executor::Threads()->Start(std::move(name), [this, body = std::move(body)] {
    body();
    OnEnd();
  }));
}

void WorkerThreads::OnEnd() {
  MutexLock lock(&mutex_);
  --running_;
  ended_.SignalAll();
}

bool WorkerThreads::AwaitEnd(absl::Duration limit) {
  const absl::Time deadline = clock_->Now() + limit;
  MutexLock lock(&mutex_);
  while (running_ > 0) {
    if (clock_->WaitUntil(&ended_, &mutex_, deadline)) return running_ == 0;
  }
  return true;
}

}  // namespace lockstep::train

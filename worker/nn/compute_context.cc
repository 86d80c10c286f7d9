#include "worker/nn/compute_context.h"

#include <algorithm>

namespace lockstep {

ComputeContext::ComputeContext(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

ComputeContext::~ComputeContext() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  loop_started_.SignalAll();
  for (std::thread& worker : workers_) worker.join();
}

void ComputeContext::ParallelFor(int64_t blocks, absl::FunctionRef<void(int64_t)> body) {
  if (workers_.empty() || blocks <= 1) {
    for (int64_t block = 0; block < blocks; ++block) body(block);
    return;
  }
  Loop loop{body, blocks};
  {
    MutexLock lock(&mutex_);
    loop_ = &loop;
    ++loops_;
  }
  loop_started_.SignalAll();
  RunBlocks(&loop);
  MutexLock lock(&mutex_);
  // A worker that has not woken yet finds no loop; one that has must leave before `loop` goes.
  loop_ = nullptr;
  while (inside_ > 0) worker_left_.Wait(&mutex_);
}

void ComputeContext::ParallelRanges(int64_t size, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  ParallelFor((size + grain - 1) / grain,
              [&](int64_t block) { body(block * grain, std::min(size, (block + 1) * grain)); });
}

void ComputeContext::RunBlocks(Loop* loop) {
  for (;;) {
    const int64_t block = loop->next.fetch_add(1, std::memory_order_relaxed);
    if (block >= loop->blocks) return;
    loop->body(block);
  }
}

void ComputeContext::Work() {
  uint64_t seen = 0;
  for (;;) {
    Loop* loop;
    {
      MutexLock lock(&mutex_);
      while (!stopping_ && (loop_ == nullptr || loops_ == seen)) loop_started_.Wait(&mutex_);
      if (stopping_) return;
      seen = loops_;
      loop = loop_;
      ++inside_;
    }
    RunBlocks(loop);
    {
      MutexLock lock(&mutex_);
      --inside_;
    }
    worker_left_.Signal();
  }
}

}  // namespace lockstep

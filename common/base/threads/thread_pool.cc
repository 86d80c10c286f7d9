#include "lockstep/common/base/threads/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace lockstep {
namespace {

// State of a ParallelFor call. Threads of the pool may reach it after the last index is taken and the caller has
// returned. Therefore they share ownership of it, and call the function only for an index that they have taken.
class Batch {
 public:
  Batch(int64_t n, absl::FunctionRef<void(int64_t)> f) : n_(n), f_(f) {}

  // Takes indices until none is left.
  void Work() {
    int64_t done = 0;
    for (int64_t i = next_.fetch_add(1, std::memory_order_relaxed); i < n_;
         i = next_.fetch_add(1, std::memory_order_relaxed)) {
      f_(i);
      ++done;
    }
    if (done == 0) return;
    MutexLock lock(&mutex_);
    done_ += done;
    if (done_ == n_) all_done_.SignalAll();
  }

  void AwaitAll() {
    MutexLock lock(&mutex_);
    while (done_ < n_) all_done_.Wait(&mutex_);
  }

 private:
  const int64_t n_;
  const absl::FunctionRef<void(int64_t)> f_;
  std::atomic<int64_t> next_{0};
  Mutex mutex_;
  CondVar all_done_;
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

ThreadPool::ThreadPool(int threads, Executor* executor) {
  for (int i = 0; i < std::max(threads, 1); ++i) threads_.push_back(executor->Start("pool", [this] { Work(); }));
}

std::unique_ptr<ThreadPool> ThreadPool::Try(int threads, Executor* executor) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool());
  for (int i = 0; i < threads; ++i) {
    auto thread = executor->TryStart("pool", [pool = pool.get()] { pool->Work(); });
    if (thread == nullptr) break;
    pool->threads_.push_back(std::move(thread));
  }
  return pool->size() > 0 ? std::move(pool) : nullptr;
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    work_or_end_.SignalAll();
  }
  for (const auto& thread : threads_) thread->Join();
}

void ThreadPool::Schedule(absl::AnyInvocable<void()> closure) {
  MutexLock lock(&mutex_);
  queue_.push_back(std::move(closure));
  work_or_end_.Signal();
}

void ThreadPool::ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> f) {
  if (n <= 0) return;
  const auto batch = std::make_shared<Batch>(n, f);
  const int64_t others = std::min<int64_t>(n - 1, size());
  for (int64_t i = 0; i < others; ++i) Schedule([batch] { batch->Work(); });
  batch->Work();
  batch->AwaitAll();
}

void ThreadPool::Work() {
  while (true) {
    absl::AnyInvocable<void()> closure;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !ending_) work_or_end_.Wait(&mutex_);
      if (queue_.empty()) return;
      closure = std::move(queue_.front());
      queue_.pop_front();
    }
    closure();
  }
}

}  // namespace lockstep

#ifndef LOCKSTEP_COMMON_BASE_THREADS_THREAD_POOL_H_
#define LOCKSTEP_COMMON_BASE_THREADS_THREAD_POOL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/threads/executor.h"

namespace lockstep {

// A fixed number of threads that run closures in the order in which they were scheduled. The destructor runs all
// scheduled closures first. Thread-safe; the destructor must not run in one of the pool's threads.
class ThreadPool {
 public:
  // Starts `threads` threads, or one if `threads` is less than 1.
  explicit ThreadPool(int threads, Executor* executor = Executor::Threads());
  // Returns a pool with up to `threads` threads, as many as the system can start; null if it can start none.
  static std::unique_ptr<ThreadPool> Try(int threads, Executor* executor = Executor::Threads());
  ~ThreadPool();

  void Schedule(absl::AnyInvocable<void()> closure) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls f(0) ... f(n - 1), each once, in any order, in this thread and the pool's idle threads. Returns when all
  // calls have returned. May be called inside a closure and inside another ParallelFor.
  void ParallelFor(int64_t n, absl::FunctionRef<void(int64_t)> f) ABSL_LOCKS_EXCLUDED(mutex_);

  int size() const { return static_cast<int>(threads_.size()); }

 private:
  ThreadPool() = default;

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar work_or_end_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<absl::AnyInvocable<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Thread>> threads_;  // constant after construction
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_THREADS_THREAD_POOL_H_

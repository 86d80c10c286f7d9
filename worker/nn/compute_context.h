#ifndef LOCKSTEP_WORKER_NN_COMPUTE_CONTEXT_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "common/base/mutex.h"

namespace lockstep {

// The threads that compute one model. The caller's thread is one of them; the others wait
// between the loops. Which thread computes a block is left to chance, so a loop must be cut
// into blocks at places that do not depend on the number of threads, and each block must
// write memory of its own: then the bits do not depend on it either.
// The destructor joins the threads. Not thread-safe: one loop at a time.
class ComputeContext {
 public:
  // threads: all of them, the caller's included; less than 1 counts as 1.
  explicit ComputeContext(int threads);
  ~ComputeContext();
  ComputeContext(const ComputeContext&) = delete;
  ComputeContext& operator=(const ComputeContext&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(0) ... body(blocks - 1), each once, in any order, and returns when all have returned.
  void ParallelFor(int64_t blocks, absl::FunctionRef<void(int64_t block)> body) ABSL_LOCKS_EXCLUDED(mutex_);

  // The same over [0, size) in ranges of `grain`, the last one shorter: body(begin, end).
  void ParallelRanges(int64_t size, int64_t grain, absl::FunctionRef<void(int64_t begin, int64_t end)> body)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Loop {
    absl::FunctionRef<void(int64_t)> body;
    const int64_t blocks;
    std::atomic<int64_t> next{0};
  };

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  static void RunBlocks(Loop* loop);

  Mutex mutex_;
  CondVar loop_started_;
  CondVar worker_left_;
  Loop* loop_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t loops_ ABSL_GUARDED_BY(mutex_) = 0;
  // Workers that may still touch *loop_.
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_CONTEXT_H_

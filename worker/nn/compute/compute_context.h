#ifndef LOCKSTEP_WORKER_NN_COMPUTE_COMPUTE_CONTEXT_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_COMPUTE_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/base/threads/thread_pool.h"

namespace lockstep {

// The threads that compute one model. The caller's thread is one of them; the others wait between loops. Any thread may
// compute any block, so a loop must be divided into blocks in a way that does not depend on the number of threads, and
// each block must write to its own memory. Then the results are the same, to the last bit, for any number of threads.
// Not thread-safe: one loop at a time.
class ComputeContext {
 public:
  // `threads` includes the caller's; less than 1 counts as 1.
  explicit ComputeContext(int threads, Executor* executor = Executor::Threads()) : threads_(std::max(threads, 1)) {
    if (threads > 1) pool_ = std::make_unique<ThreadPool>(threads - 1, executor);
  }

  // Number of threads, including the caller's. No result may depend on it.
  int threads() const { return threads_; }

  // Calls body(0) ... body(blocks - 1), each once, in any order, and returns when all calls have returned.
  void ParallelFor(int64_t blocks, absl::FunctionRef<void(int64_t block)> body) {
    if (pool_ != nullptr && blocks > 1) {
      pool_->ParallelFor(blocks, body);
    } else {
      for (int64_t block = 0; block < blocks; ++block) body(block);
    }
  }

  // Like ParallelFor, but calls body(begin, end) for ranges of length `grain` that cover [0, size). The last range may
  // be shorter.
  void ParallelRanges(int64_t size, int64_t grain, absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
    ParallelFor((size + grain - 1) / grain, [&](int64_t block) {
      const int64_t begin = block * grain;
      body(begin, begin + grain < size ? begin + grain : size);
    });
  }

 private:
  const int threads_;
  // The other threads; null if there is only one.
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_COMPUTE_CONTEXT_H_

#ifndef LOCKSTEP_SERVER_PS_VERSIONS_PREFAULT_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_PREFAULT_H_

#include <atomic>
#include <memory>

#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"

namespace lockstep {

// Pre-faulting of fresh buffers, in order, so that writers do not wait for the kernel to provide memory. Large amounts
// are pre-faulted on a separate thread, while the buffers may already be in use; the destructor stops it early. Not
// thread-safe.
class Prefault {
 public:
  // No thread may use `buffers` before the constructor returns.
  Prefault(Executor* executor, BufferPool::Buffers buffers);
  ~Prefault();

  // Blocks until all memory has been pre-faulted.
  void Await();

 private:
  // Pre-faults all memory, but stops early if the destructor runs.
  void Run();

  BufferPool::Buffers buffers_;  // released when Run has ended
  std::atomic<bool> ending_{false};
  std::unique_ptr<Thread> thread_;  // null for small amounts
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_PREFAULT_H_

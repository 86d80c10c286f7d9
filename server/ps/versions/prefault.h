#ifndef LOCKSTEP_SERVER_PS_VERSIONS_PREFAULT_H_
#define LOCKSTEP_SERVER_PS_VERSIONS_PREFAULT_H_

#include <atomic>
#include <memory>

#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/memory/buffer_pool.h"

namespace lockstep {

// Has the kernel provide the memory of fresh buffers, in their order, before anybody writes to it: in a thread of its
// own where it is much, while they are in use. Destroying it ends that early. Not thread-safe.
class Prefault {
 public:
  // Nobody uses `buffers` before this returns.
  Prefault(Executor* executor, BufferPool::Buffers buffers);
  ~Prefault();

  // Blocks until all is provided.
  void Await();

 private:
  // All of it, unless it is to end.
  void Run();

  BufferPool::Buffers buffers_;  // until it has ended: whoever has no more use for one frees it then
  std::atomic<bool> ending_{false};
  std::unique_ptr<Thread> thread_;  // null where it is little
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PS_VERSIONS_PREFAULT_H_

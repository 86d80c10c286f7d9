#ifndef LOCKSTEP_COMMON_MEMORY_BUFFER_POOL_H_
#define LOCKSTEP_COMMON_MEMORY_BUFFER_POOL_H_

#include <memory>
#include <vector>

#include "lockstep/common/base/mutex.h"
#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {

// A pool of buffers of one size. A buffer returns to the pool when its last owner releases it. Thread-safe; buffers may
// outlive the pool.
class BufferPool {
 public:
  // Keeps at most `max_spare` unused buffers. If `shared`, other processes may map them (AlignedBuffer::Shared).
  BufferPool(size_t bytes, size_t max_spare, bool shared = false)
      : free_list_(std::make_shared<FreeList>(bytes, max_spare, shared)) {}

  // Returns a buffer, which is not initialized.
  std::shared_ptr<AlignedBuffer> Get();
  using Buffers = std::vector<std::shared_ptr<AlignedBuffer>>;
  // Allocates until there are `max_spare` unused buffers, and appends the new ones to `taken` in the order in which Get
  // returns them. Only Prefault may touch them, because they may be in use as soon as Get returns them.
  void Fill(Buffers* taken);
  // Number of unused buffers.
  size_t num_spare() const;

 private:
  struct FreeList {
    FreeList(size_t bytes, size_t max_spare, bool shared) : bytes(bytes), max_spare(max_spare), shared(shared) {}
    std::shared_ptr<AlignedBuffer> NewBuffer() const;

    const size_t bytes;
    const size_t max_spare;
    const bool shared;
    Mutex mutex;
    Buffers spare ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<FreeList> free_list_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_BUFFER_POOL_H_

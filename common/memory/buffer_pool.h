#ifndef LOCKSTEP_COMMON_MEMORY_BUFFER_POOL_H_
#define LOCKSTEP_COMMON_MEMORY_BUFFER_POOL_H_

#include <memory>
#include <vector>

#include "lockstep/common/base/mutex.h"
#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {

// Buffers of one size that come back when their last owner lets go of them. Thread-safe; buffers may outlive the pool.
class BufferPool {
 public:
  // At most `max_spare` unused buffers are kept. `shared`: other processes may map them (AlignedBuffer::Shared).
  BufferPool(size_t bytes, size_t max_spare, bool shared = false)
      : shelf_(std::make_shared<Shelf>(bytes, max_spare, shared)) {}

  // Not initialized.
  std::shared_ptr<AlignedBuffer> Get();
  using Buffers = std::vector<std::shared_ptr<AlignedBuffer>>;
  // Keeps `max_spare` unused buffers from now on, and adds those that are new to `taken`, in the order in which Get
  // returns them: for Prefault, since they are in use as soon as Get returns them.
  void Fill(Buffers* taken);
  // Unused buffers that are kept.
  size_t num_spare() const;

 private:
  struct Shelf {
    Shelf(size_t bytes, size_t max_spare, bool shared) : bytes(bytes), max_spare(max_spare), shared(shared) {}
    std::shared_ptr<AlignedBuffer> NewBuffer() const;

    const size_t bytes;
    const size_t max_spare;
    const bool shared;
    Mutex mutex;
    Buffers spare ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Shelf> shelf_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_BUFFER_POOL_H_

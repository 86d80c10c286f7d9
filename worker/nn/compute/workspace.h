#ifndef LOCKSTEP_WORKER_NN_COMPUTE_WORKSPACE_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_WORKSPACE_H_

#include <algorithm>
#include <cstdint>

#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {

// Memory that is kept from step to step: aligned to kTensorAlignment, grown for larger batches, never shrunk. Growing
// loses the contents. Movable. Not thread-safe.
template <typename T>
class Workspace {
 public:
  // Returns at least `size` elements, not initialized; the address is the same until a larger size is requested.
  T* Get(int64_t size) {
    if (size > size_ || size_ == 0) {
      size_ = std::max<int64_t>(size, 1);
      buffer_ = AlignedBuffer();  // The old memory goes before the new is asked for.
      buffer_ = AlignedBuffer(size_ * sizeof(T));
    }
    return buffer_.as<T>();
  }
  T* data() { return buffer_.as<T>(); }
  const T* data() const { return buffer_.as<T>(); }

 private:
  AlignedBuffer buffer_;
  int64_t size_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_NN_COMPUTE_WORKSPACE_H_

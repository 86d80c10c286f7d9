#ifndef LOCKSTEP_WORKER_NN_COMPUTE_WORKSPACE_H_
#define LOCKSTEP_WORKER_NN_COMPUTE_WORKSPACE_H_

#include <algorithm>
#include <cstdint>

#include "lockstep/common/memory/aligned_buffer.h"

namespace lockstep {

// Memory that is kept between steps. It is aligned to kTensorAlignment, grows for larger batches and never shrinks. The
// contents are lost when it grows. Movable. Not thread-safe.
template <typename T>
class Workspace {
 public:
  // Returns at least `size` uninitialized elements. The address stays the same until a larger size is requested.
  T* Get(int64_t size) {
    if (size > size_ || size_ == 0) {
      size_ = std::max<int64_t>(size, 1);
      buffer_ = AlignedBuffer();  // Frees the old memory before allocating the new.
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

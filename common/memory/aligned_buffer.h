#ifndef LOCKSTEP_COMMON_MEMORY_ALIGNED_BUFFER_H_
#define LOCKSTEP_COMMON_MEMORY_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "lockstep/common/memory/shared_memory.h"

namespace lockstep {

// Alignment of every tensor, in bytes: the size of a cache line and of the widest vector register. The kernels' sums do
// not depend on addresses; with this alignment, neither do those of a user's model that computes with Eigen.
inline constexpr size_t kTensorAlignment = 64;

// Memory of a fixed size, aligned to kTensorAlignment, not initialized. Movable. Not thread-safe.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Aborts if the machine is out of memory.
  explicit AlignedBuffer(size_t bytes);
  // Allocates memory that other processes may map, or private memory if the system does not provide any.
  static AlignedBuffer Shared(size_t bytes);

  char* data() { return shared_ != nullptr ? shared_->data() : data_.get(); }
  const char* data() const { return shared_ != nullptr ? shared_->data() : data_.get(); }
  // Size in bytes.
  size_t size() const { return size_; }
  // Makes the kernel provide the memory of these bytes now, so that the first writer does not wait until the kernel has
  // cleared it. Provides whole huge pages in the range as huge pages, if possible. Does not change the contents; other
  // threads may read and write meanwhile. Returns false if the kernel does not support this (before Linux 5.14).
  bool Populate(size_t offset, size_t bytes);
  // Null if the memory is private to this process.
  const v1::SharedMemoryHandle* handle() const { return shared_ != nullptr ? &shared_->handle() : nullptr; }

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data());
  }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  // At most one of data_ and shared_ is set.
  std::unique_ptr<char, Free> data_;
  std::unique_ptr<SharedMemory> shared_;
  size_t size_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_ALIGNED_BUFFER_H_

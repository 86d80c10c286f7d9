#ifndef LOCKSTEP_COMMON_MEMORY_ALIGNED_BUFFER_H_
#define LOCKSTEP_COMMON_MEMORY_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "lockstep/common/memory/shared_memory.h"

namespace lockstep {

// Every tensor starts at a multiple of this many bytes: a cache line, and the widest vector. The kernels' sums do not
// depend on an address; with this, those of a user's model that computes with Eigen do not either.
inline constexpr size_t kTensorAlignment = 64;

// Memory of a fixed size, aligned to kTensorAlignment, not initialized. Movable. Not thread-safe.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Aborts when the machine is out of memory.
  explicit AlignedBuffer(size_t bytes);
  // In memory that other processes may map, if the system provides it.
  static AlignedBuffer Shared(size_t bytes);

  char* data() { return shared_ != nullptr ? shared_->data() : data_.get(); }
  const char* data() const { return shared_ != nullptr ? shared_->data() : data_.get(); }
  // Bytes.
  size_t size() const { return size_; }
  // Has the kernel provide the memory of these bytes now, so that who writes there first does not wait for it to be
  // cleared; whole huge pages among them as such, if it can. Changes nothing: others may read and write meanwhile.
  // False when the kernel does not do that (before Linux 5.14).
  bool Populate(size_t offset, size_t bytes);
  // Null when the memory is private to this process.
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
  // One of the two, or neither.
  std::unique_ptr<char, Free> data_;
  std::unique_ptr<SharedMemory> shared_;
  size_t size_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMORY_ALIGNED_BUFFER_H_

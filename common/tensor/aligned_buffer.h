#ifndef LOCKSTEP_COMMON_TENSOR_ALIGNED_BUFFER_H_
#define LOCKSTEP_COMMON_TENSOR_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace lockstep {

// Every tensor starts at a multiple of this many bytes, so that the position of Eigen's
// vector loops, and with it every result, does not depend on the address.
inline constexpr size_t kTensorAlignment = 64;

// Memory of a fixed size, aligned to kTensorAlignment, not initialized. Movable. Not thread-safe.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Aborts when the machine has no such memory.
  explicit AlignedBuffer(size_t bytes);

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  // Bytes.
  size_t size() const { return size_; }

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_.get());
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_ALIGNED_BUFFER_H_

#ifndef LOCKSTEP_KERNELS_VECTORS_SCRATCH_H_
#define LOCKSTEP_KERNELS_VECTORS_SCRATCH_H_

#include <cstdint>
#include <cstdlib>
#include <new>

namespace lockstep {

// Memory that a thread's kernels reuse from call to call. It is aligned to 64 bytes, grows on demand and never shrinks.
// Growing loses the contents. Not thread-safe; intended for `thread_local` variables.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { std::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Returns at least `size` uninitialized floats, which are valid until the next call.
  float* Get(int64_t size) {
    if (size > size_) {
      std::free(data_);
      const size_t bytes = (static_cast<size_t>(size) * sizeof(float) + 63) / 64 * 64;
      data_ = static_cast<float*>(std::aligned_alloc(64, bytes));
      if (data_ == nullptr) std::abort();
      size_ = size;
    }
    return data_;
  }

 private:
  float* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_KERNELS_VECTORS_SCRATCH_H_

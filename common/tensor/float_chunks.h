#ifndef LOCKSTEP_COMMON_TENSOR_FLOAT_CHUNKS_H_
#define LOCKSTEP_COMMON_TENSOR_FLOAT_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Little-endian numbers, float32, bfloat16 or float16, that lie in one or more runs of borrowed memory, at any
// alignment, an element possibly split between two: a tensor as it came from the network. They are read as floats.
// Owns nothing. Thread-compatible.
class FloatChunks {
 public:
  FloatChunks() = default;
  // One run of n floats.
  FloatChunks(const float* data, int64_t n);
  // One run of n numbers of a 16-bit type.
  FloatChunks(v1::DataType type, const uint16_t* data, int64_t n);

  // Adds bytes at the end.
  void Append(absl::string_view bytes);
  // What the bytes are; one of the three types.
  void set_type(v1::DataType type);

  v1::DataType type() const { return type_; }
  size_t element_bytes() const { return element_bytes_; }
  size_t bytes() const { return bytes_; }
  // Whole elements.
  int64_t size() const { return static_cast<int64_t>(bytes_ / element_bytes_); }

  // out[i] = element first + i, for i in [0, n). The range must lie inside.
  void CopyTo(int64_t first, int64_t n, float* out) const;
  // out[i] += element first + i.
  void AddTo(int64_t first, int64_t n, float* out) const;
  // The elements' address when they are floats and [first, first + n) lies in one run at a float's alignment, else
  // null.
  const float* Contiguous(int64_t first, int64_t n) const;
  // All bytes, as they are.
  void CopyBytes(char* out) const;
  // All bytes when they lie in one run, else null.
  const char* SingleRun() const;
  // All bytes, copied to `storage` when they lie in several runs.
  absl::string_view Bytes(std::string* storage) const;

 private:
  // Calls f(destination index, bytes of whole elements) over the range; a split element is assembled first.
  template <typename F>
  void ForEachRun(int64_t first, int64_t n, F f) const;

  absl::InlinedVector<absl::string_view, 2> chunks_;
  v1::DataType type_ = v1::DT_FLOAT;
  size_t element_bytes_ = sizeof(float);
  size_t bytes_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_FLOAT_CHUNKS_H_

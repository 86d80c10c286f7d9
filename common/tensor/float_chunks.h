#ifndef LOCKSTEP_COMMON_TENSOR_FLOAT_CHUNKS_H_
#define LOCKSTEP_COMMON_TENSOR_FLOAT_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// Little-endian numbers (float32, bfloat16 or float16) in one or more runs of borrowed memory at any alignment, such as
// a tensor received from the network. An element may be split between two runs. Numbers are read as floats. The values
// of an integer variable are only copied as bytes (IsIntegerVariableType). Owns nothing. Thread-compatible.
class FloatChunks {
 public:
  FloatChunks() = default;
  // A run of n floats.
  FloatChunks(const float* data, int64_t n);
  // A run of n numbers of this type.
  FloatChunks(v1::DataType type, const void* data, int64_t n);

  // Appends bytes.
  void Append(absl::string_view bytes);
  // Sets the type of the bytes, one of those above.
  void set_type(v1::DataType type);

  v1::DataType type() const { return type_; }
  size_t element_bytes() const { return element_bytes_; }
  size_t bytes() const { return bytes_; }
  // Number of complete elements.
  int64_t size() const { return static_cast<int64_t>(bytes_ / element_bytes_); }

  // Sets out[i] to element first + i, for i in [0, n). The range must be within size(), and the type a float type.
  void CopyTo(int64_t first, int64_t n, float* out) const;
  // Adds element first + i to out[i].
  void AddTo(int64_t first, int64_t n, float* out) const;
  // Returns the elements' address if they are floats and [first, first + n) is in one run with a float's alignment,
  // otherwise null.
  const float* Contiguous(int64_t first, int64_t n) const;
  // Copies all bytes unchanged.
  void CopyBytes(char* out) const;
  // Returns all bytes if they are in one run, otherwise null.
  const char* SingleRun() const;
  // Returns all bytes, copied to `storage` if they are in several runs.
  absl::string_view Bytes(std::string* storage) const;

 private:
  // Calls f(destination index, bytes of whole elements) for each run in the range. Elements that are split between two
  // runs are assembled first.
  template <typename F>
  void ForEachRun(int64_t first, int64_t n, F f) const;

  absl::InlinedVector<absl::string_view, 2> chunks_;
  v1::DataType type_ = v1::DT_FLOAT;
  size_t element_bytes_ = sizeof(float);
  size_t bytes_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_FLOAT_CHUNKS_H_

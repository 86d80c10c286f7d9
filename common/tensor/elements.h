#ifndef LOCKSTEP_COMMON_TENSOR_ELEMENTS_H_
#define LOCKSTEP_COMMON_TENSOR_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/string_view.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The elements of a tensor in borrowed memory, with their type. Converts from an array, a vector or a span of float,
// int32_t, int64_t, uint8_t or bool. A value type.
class Elements {
 public:
  template <typename T>
  Elements(const T* data, size_t size)
      : Elements(DataTypeOf<T>::value, {reinterpret_cast<const char*>(data), size * sizeof(T)}) {}
  template <typename Container, typename = decltype(std::data(std::declval<const Container&>()))>
  Elements(const Container& container) : Elements(std::data(container), std::size(container)) {}  // NOLINT: implicit
  // `bytes` are whole elements of this type, little-endian.
  Elements(v1::DataType dtype, absl::string_view bytes) : dtype_(dtype), bytes_(bytes) {}

  v1::DataType dtype() const { return dtype_; }
  absl::string_view bytes() const { return bytes_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size() / SizeOf(dtype_)); }
  // `T` must be the type of the elements.
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes_.data());
  }

 private:
  v1::DataType dtype_;
  absl::string_view bytes_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_ELEMENTS_H_

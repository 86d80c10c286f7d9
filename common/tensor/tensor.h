#ifndef LOCKSTEP_COMMON_TENSOR_TENSOR_H_
#define LOCKSTEP_COMMON_TENSOR_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lockstep/common/memory/aligned_buffer.h"
#include "lockstep/common/tensor/dtype.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// A typed array in aligned memory, row-major. Copies share the memory, and any copy may write to it, so treat a tensor
// as constant once you have handed it over. Thread-compatible.
class Tensor {
 public:
  // Creates an empty tensor: DT_INVALID, a scalar's shape, no memory.
  Tensor() = default;
  // Leaves the contents uninitialized. `dtype` must have a fixed size.
  Tensor(v1::DataType dtype, Shape shape);

  // Copies values in row-major order; their number must match the shape.
  template <typename T>
  static Tensor FromValues(Shape shape, absl::Span<const T> values);

  // Errors: InvalidArgument if dtype, shape and content disagree.
  static absl::StatusOr<Tensor> FromProto(const v1::TensorProto& proto);
  v1::TensorProto ToProto() const;

  v1::DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return buffer_ ? shape_.num_elements() : 0; }
  // The contents: num_elements() times the element size, in bytes.
  absl::string_view bytes() const;
  char* data() { return buffer_ ? buffer_->data() : nullptr; }

  // T must be the element type of dtype().
  template <typename T>
  absl::Span<T> flat();
  template <typename T>
  absl::Span<const T> flat() const;

 private:
  v1::DataType dtype_ = v1::DT_INVALID;
  Shape shape_;
  std::shared_ptr<AlignedBuffer> buffer_;
};

template <typename T>
Tensor Tensor::FromValues(Shape shape, absl::Span<const T> values) {
  Tensor tensor(DataTypeOf<T>::value, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.flat<T>().begin());
  return tensor;
}

template <typename T>
absl::Span<T> Tensor::flat() {
  if (!buffer_) return {};
  return {buffer_->as<T>(), buffer_->size() / sizeof(T)};
}

template <typename T>
absl::Span<const T> Tensor::flat() const {
  if (!buffer_) return {};
  return absl::Span<const T>(buffer_->as<T>(), buffer_->size() / sizeof(T));  // braces would be a list of bools
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_TENSOR_H_

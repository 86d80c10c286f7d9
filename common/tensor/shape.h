#ifndef LOCKSTEP_COMMON_TENSOR_SHAPE_H_
#define LOCKSTEP_COMMON_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lockstep/v1/tensor.pb.h"

namespace lockstep {

// The dimensions of a tensor, all of them known, in row-major order. A scalar has none. A value type.
class Shape {
 public:
  Shape() = default;
  // Requires valid dimensions; untrusted ones must go through Create.
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}

  // Returns InvalidArgument for a negative dimension or more than 2^62 elements.
  static absl::StatusOr<Shape> Create(absl::Span<const int64_t> dims);
  static absl::StatusOr<Shape> FromProto(const v1::TensorShapeProto& proto);
  v1::TensorShapeProto ToProto() const;

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t num_elements() const;

  // Returns the dimensions in a form such as "[2,3]", or "[]" for a scalar.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  absl::InlinedVector<int64_t, 4> dims_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_SHAPE_H_

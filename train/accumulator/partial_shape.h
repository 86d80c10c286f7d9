#ifndef LOCKSTEP_TRAIN_ACCUMULATOR_PARTIAL_SHAPE_H_
#define LOCKSTEP_TRAIN_ACCUMULATOR_PARTIAL_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep::train {

// The known part of a tensor's shape: all of it, the rank and some dimensions, or nothing. A value type.
class PartialShape {
 public:
  static constexpr int64_t kUnknown = -1;

  // Creates a shape whose rank is unknown.
  PartialShape() = default;
  // Creates a shape of known rank. A dimension of kUnknown may have any size; other dimensions must not be negative.
  PartialShape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  // Converts a fully known shape.
  PartialShape(const Shape& shape)  // NOLINT(google-explicit-constructor)
      : dims_(absl::InlinedVector<int64_t, 4>(shape.dims().begin(), shape.dims().end())) {}

  bool has_rank() const { return dims_.has_value(); }
  // Returns the number of dimensions, or 0 if the rank is unknown.
  int rank() const { return dims_ ? static_cast<int>(dims_->size()) : 0; }
  // Returns the size of dimension i, or kUnknown. Requires 0 <= i < rank().
  int64_t dim(int i) const { return (*dims_)[static_cast<size_t>(i)]; }

  // Returns true if `size` is a possible size of dimension i; i must be below rank().
  bool Allows(int i, int64_t size) const { return dim(i) == kUnknown || dim(i) == size; }
  // Returns true if `shape` has the known rank and the known dimensions.
  bool Matches(const Shape& shape) const;

  // Returns "[2,?]", or "?" if the rank is unknown.
  std::string ToString() const;

 private:
  absl::optional<absl::InlinedVector<int64_t, 4>> dims_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_ACCUMULATOR_PARTIAL_SHAPE_H_

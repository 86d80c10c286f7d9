#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_SLICE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_SLICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/common/tensor/shape.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// A box of a larger tensor, with a start and a length in each dimension. A value type.
class TensorSlice {
 public:
  // An extent without a length covers the whole dimension. InvalidArgument if the slice exceeds `shape`.
  static absl::StatusOr<TensorSlice> FromProto(const v1::TensorSliceProto& proto, const Shape& shape);

  uint64_t num_elements() const;
  bool Overlaps(const TensorSlice& other) const;

  // Copies the slice's elements, row-major, to their positions in a tensor of `shape`. `element_size` in bytes.
  void CopyInto(const char* content, const Shape& shape, size_t element_size, char* tensor) const;

  // "0,3:2,3": start,length of each dimension.
  std::string ToString() const;

 private:
  std::vector<int64_t> start_;
  std::vector<int64_t> length_;
};

// Maximum slices of one variable. Comparing all pairs is cheap up to this limit; partitioners make hundreds.
inline constexpr int kMostSlices = 10000;

// InvalidArgument unless each element of `shape` is in exactly one of the `slices`, at most kMostSlices.
absl::Status CheckCover(const std::vector<TensorSlice>& slices, const Shape& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_SLICE_H_

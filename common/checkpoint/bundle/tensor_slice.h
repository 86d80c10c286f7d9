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

// A rectangular part of a larger tensor, with a start and a length in each dimension. A value type.
class TensorSlice {
 public:
  // An extent without a length covers the whole dimension. Returns InvalidArgument if the slice exceeds `shape`.
  static absl::StatusOr<TensorSlice> FromProto(const v1::TensorSliceProto& proto, const Shape& shape);

  uint64_t num_elements() const;
  bool Overlaps(const TensorSlice& other) const;

  // Copies the slice's elements, row-major, to their positions in a tensor of `shape`. `element_size` is in bytes.
  void CopyInto(const char* content, const Shape& shape, size_t element_size, char* tensor) const;

  // Returns "0,3:2,3", the start,length of each dimension.
  std::string ToString() const;

 private:
  std::vector<int64_t> start_;
  std::vector<int64_t> length_;
};

// Maximum number of slices of one variable. Comparing all pairs is cheap up to this limit, and partitioners make only
// hundreds of slices.
inline constexpr int kMostSlices = 10000;

// Returns InvalidArgument unless each element of `shape` is in exactly one of the `slices` and there are at most
// kMostSlices.
absl::Status CheckCover(const std::vector<TensorSlice>& slices, const Shape& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_TENSOR_SLICE_H_

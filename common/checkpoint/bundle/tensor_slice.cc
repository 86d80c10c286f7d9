#include "lockstep/common/checkpoint/bundle/tensor_slice.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace lockstep {
absl::StatusOr<TensorSlice> TensorSlice::FromProto(const v1::TensorSliceProto& proto, const Shape& shape) {
  if (proto.extent_size() != shape.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a slice of ", proto.extent_size(), " dimensions of shape ", shape.ToString()));
  }
  TensorSlice slice;
  for (int d = 0; d < shape.rank(); ++d) {
    const v1::TensorSliceProto::Extent& extent = proto.extent(d);
    const bool whole = extent.has_length_case() == v1::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    slice.start_.push_back(whole ? 0 : extent.start());
    slice.length_.push_back(whole ? shape.dim(d) : extent.length());
    if (slice.start_[d] < 0 || slice.length_[d] < 0 || slice.start_[d] > shape.dim(d) ||
        slice.length_[d] > shape.dim(d) - slice.start_[d]) {
      return absl::InvalidArgumentError(
          absl::StrCat("the slice ", slice.ToString(), " is not within shape ", shape.ToString()));
    }
  }
  return slice;
}

uint64_t TensorSlice::num_elements() const {
  uint64_t elements = 1;
  for (const int64_t length : length_) elements *= length;
  return elements;
}

bool TensorSlice::Overlaps(const TensorSlice& other) const {
  for (size_t d = 0; d < start_.size(); ++d) {
    const bool apart = start_[d] + length_[d] <= other.start_[d] || other.start_[d] + other.length_[d] <= start_[d];
    if (apart) return false;
  }
  return num_elements() > 0 && other.num_elements() > 0;
}

void TensorSlice::CopyInto(const char* content, const Shape& shape, size_t element_size, char* tensor) const {
  if (num_elements() == 0) return;
  const int rank = shape.rank();
  // Runs along the last dimension are contiguous both in the slice and in the tensor.
  const size_t run = (rank == 0 ? 1 : length_[rank - 1]) * element_size;
  std::vector<int64_t> index(rank, 0);
  while (true) {
    uint64_t element = 0;
    for (int d = 0; d < rank; ++d) element = element * shape.dim(d) + start_[d] + index[d];
    std::memcpy(tensor + element * element_size, content, run);
    content += run;
    int d = rank - 2;
    while (d >= 0 && ++index[d] == length_[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

std::string TensorSlice::ToString() const {
  std::string text = start_.empty() ? "()" : "";
  for (size_t d = 0; d < start_.size(); ++d) {
    absl::StrAppend(&text, d > 0 ? ":" : "", start_[d], ",", length_[d]);
  }
  return text;
}

absl::Status CheckCover(const std::vector<TensorSlice>& slices, const Shape& shape) {
  if (slices.size() > static_cast<size_t>(kMostSlices)) {
    return absl::InvalidArgumentError(absl::StrCat(slices.size(), " slices, more than ", kMostSlices));
  }
  uint64_t elements = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    elements += slices[i].num_elements();
    for (size_t j = 0; j < i; ++j) {
      if (slices[i].Overlaps(slices[j])) {
        return absl::InvalidArgumentError(
            absl::StrCat("the slices ", slices[j].ToString(), " and ", slices[i].ToString(), " overlap"));
      }
    }
  }
  if (elements != static_cast<uint64_t>(shape.num_elements())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the slices have ", elements, " of the ", shape.num_elements(), " elements"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep

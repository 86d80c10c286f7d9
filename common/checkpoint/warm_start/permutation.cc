#include "lockstep/common/checkpoint/warm_start/permutation.h"

#include <cstddef>
#include <cstdint>

namespace lockstep {

Shape Permuted(const Shape& shape, absl::Span<const int> permutation) {
  std::vector<int64_t> dims;
  for (const int dimension : permutation) dims.push_back(shape.dim(dimension));
  // This cannot fail, because the result has as many elements as `shape`.
  return *Shape::Create(dims);
}

void Permute(const Shape& from, absl::Span<const int> permutation, absl::Span<const float> in, absl::Span<float> out) {
  const size_t rank = permutation.size();
  // For each dimension of `out`, the distance in `in` between two elements that are adjacent along that dimension.
  std::vector<int64_t> strides(rank), sizes(rank), index(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    sizes[i] = from.dim(permutation[i]);
    strides[i] = 1;
    for (int inner = permutation[i] + 1; inner < from.rank(); ++inner) strides[i] *= from.dim(inner);
  }
  int64_t place = 0;
  for (float& element : out) {
    element = in[place];
    for (size_t i = rank; i-- > 0;) {
      place += strides[i];
      if (++index[i] < sizes[i]) break;
      place -= strides[i] * sizes[i];
      index[i] = 0;
    }
  }
}

std::vector<int> PytorchPermutation(int rank) {
  switch (rank) {
    case 2:
      return {1, 0};
    case 3:
      return {2, 1, 0};
    case 4:
      return {2, 3, 1, 0};
    default:
      return {};
  }
}

}  // namespace lockstep

#ifndef LOCKSTEP_COMMON_CHECKPOINT_WARM_START_PERMUTATION_H_
#define LOCKSTEP_COMMON_CHECKPOINT_WARM_START_PERMUTATION_H_

#include <vector>

#include "absl/types/span.h"
#include "lockstep/common/tensor/shape.h"

namespace lockstep {

// Returns the shape whose dimension i is dimension permutation[i] of `shape`. `permutation` contains each number below
// the rank once.
Shape Permuted(const Shape& shape, absl::Span<const int> permutation);

// Rearranges the elements of a row-major tensor of shape `from` to the order of Permuted(from, permutation). Both spans
// have from.num_elements() elements and do not overlap.
void Permute(const Shape& from, absl::Span<const int> permutation, absl::Span<const float> in, absl::Span<float> out);

// Returns the permutation that turns a PyTorch weight into a kernel of the same rank: [out, in] (Linear), [out, in,
// width] (Conv1d), [out, in, height, width] (Conv2d). Empty for other ranks.
std::vector<int> PytorchPermutation(int rank);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_WARM_START_PERMUTATION_H_

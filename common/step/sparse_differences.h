#ifndef LOCKSTEP_COMMON_STEP_SPARSE_DIFFERENCES_H_
#define LOCKSTEP_COMMON_STEP_SPARSE_DIFFERENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The top-k compression of one segment of one slot's gradient. It keeps the largest differences between the gradient
// and its estimate, which both ends know (docs/sync.md). The encoding is the indexes in the segment as ascending
// uint16, followed by the differences as float32 in the same order, all little-endian.

// Bytes of one difference.
inline constexpr size_t kDifferenceBytes = sizeof(uint16_t) + sizeof(float);

// Returns InvalidArgument unless `bytes` is a valid encoding of differences in a segment of `elements` elements.
absl::Status CheckDifferences(absl::string_view bytes, int64_t elements);

// Computes segment[index] += difference for each difference. `bytes` must have passed CheckDifferences.
void AddDifferences(absl::string_view bytes, float* segment);

// Encoder of differences. Not thread-safe. Encoding several segments with one object reuses its memory.
class DifferenceEncoder {
 public:
  // Keeps the ceil(fraction * elements) largest differences of each segment; 0 < fraction <= 1.
  explicit DifferenceEncoder(double fraction) : fraction_(fraction) {}

  // Encodes the differences between `gradient` and `estimate`, each of which has 1 to 65536 elements. Keeps the largest
  // by magnitude and, among equal ones, those with lower indexes. A NaN counts as larger than everything; a zero is
  // never kept.
  std::string Encode(const float* gradient, const float* estimate, int64_t elements);

 private:
  // The magnitude bits of the smallest differences that are kept, and the number of differences with exactly these bits
  // to keep.
  struct Threshold {
    uint32_t bits = 0;
    int64_t ties = 0;
  };
  Threshold FindThreshold(int64_t kept);

  const double fraction_;
  std::vector<uint32_t> differences_;  // as bits
  std::vector<uint32_t> candidates_;
  std::vector<int32_t> histogram_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STEP_SPARSE_DIFFERENCES_H_

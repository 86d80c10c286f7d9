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
// uint16, then as many differences as float32, all little-endian.

// Bytes of one difference.
inline constexpr size_t kDifferenceBytes = sizeof(uint16_t) + sizeof(float);

// Returns InvalidArgument unless `bytes` encode differences of a segment of `elements` elements.
absl::Status CheckDifferences(absl::string_view bytes, int64_t elements);

// Computes segment[index] += difference for each of the (checked) differences.
void AddDifferences(absl::string_view bytes, float* segment);

// Encodes differences. Not thread-safe. Reuse the object for further segments to reuse its memory.
class DifferenceEncoder {
 public:
  // Keeps the ceil(fraction * elements) largest differences of each segment; 0 < fraction <= 1.
  explicit DifferenceEncoder(double fraction) : fraction_(fraction) {}

  // Encodes the differences of `gradient` from `estimate`, each of 1 to 65536 elements. Keeps the largest by magnitude
  // and, among equal ones, those with lower indexes. A NaN is larger than everything; a zero is never kept.
  std::string Encode(const float* gradient, const float* estimate, int64_t elements);

 private:
  // The magnitude bits of the smallest kept differences, and the number kept with exactly these bits.
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

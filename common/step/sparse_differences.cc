#include "lockstep/common/step/sparse_differences.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
// A bin of the histogram is given by a magnitude's exponent and the four bits after it.
constexpr int kBinShift = 19;
constexpr size_t kBins = size_t{1} << (31 - kBinShift);

int64_t CountOf(absl::string_view bytes) { return static_cast<int64_t>(bytes.size() / kDifferenceBytes); }

uint16_t IndexAt(absl::string_view bytes, int64_t i) {
  uint16_t index;
  std::memcpy(&index, bytes.data() + i * sizeof(index), sizeof(index));
  return index;
}

}  // namespace

absl::Status CheckDifferences(absl::string_view bytes, int64_t elements) {
  if (bytes.size() % kDifferenceBytes != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes are not a whole number of differences of ", kDifferenceBytes, " bytes"));
  }
  int64_t last = -1;
  for (int64_t i = 0; i < CountOf(bytes); ++i) {
    const int64_t index = IndexAt(bytes, i);
    if (index <= last) {
      return absl::InvalidArgumentError(absl::StrCat("index ", index, " follows index ", last));
    }
    last = index;
  }
  if (last >= elements) {
    return absl::InvalidArgumentError(absl::StrCat("index ", last, " is not below the ", elements, " elements"));
  }
  return absl::OkStatus();
}

void AddDifferences(absl::string_view bytes, float* segment) {
  const int64_t count = CountOf(bytes);
  const char* const differences = bytes.data() + count * sizeof(uint16_t);
  for (int64_t i = 0; i < count; ++i) {
    float difference;
    std::memcpy(&difference, differences + i * sizeof(difference), sizeof(difference));
    segment[IndexAt(bytes, i)] += difference;
  }
}

DifferenceEncoder::Threshold DifferenceEncoder::FindThreshold(int64_t kept) {
  histogram_.assign(kBins, 0);
  for (const uint32_t bits : differences_) ++histogram_[(bits & kMagnitude) >> kBinShift];
  size_t bin = kBins - 1;
  while (bin > 0 && histogram_[bin] < kept) kept -= histogram_[bin--];
  candidates_.clear();
  for (const uint32_t bits : differences_) {
    if ((bits & kMagnitude) >> kBinShift == bin) candidates_.push_back(bits & kMagnitude);
  }
  // Find the `kept`-th largest magnitude in the bin.
  const auto nth = candidates_.begin() + (kept - 1);
  std::nth_element(candidates_.begin(), nth, candidates_.end(), [](uint32_t a, uint32_t b) { return a > b; });
  const uint32_t bits = *nth;
  const auto above = std::count_if(candidates_.begin(), nth, [bits](uint32_t other) { return other > bits; });
  return {bits, kept - above};
}

std::string DifferenceEncoder::Encode(const float* gradient, const float* estimate, int64_t elements) {
  differences_.resize(elements);
  for (int64_t i = 0; i < elements; ++i) {
    const float difference = gradient[i] - estimate[i];
    std::memcpy(&differences_[i], &difference, sizeof(difference));
  }
  const auto kept = static_cast<int64_t>(std::ceil(fraction_ * static_cast<double>(elements)));
  Threshold threshold = FindThreshold(std::min(std::max<int64_t>(kept, 1), elements));
  std::string indexes, values;
  for (int64_t i = 0; i < elements; ++i) {
    const uint32_t magnitude = differences_[i] & kMagnitude;
    if (magnitude < threshold.bits || magnitude == 0) continue;
    if (magnitude == threshold.bits && threshold.ties-- <= 0) continue;
    const auto index = static_cast<uint16_t>(i);
    indexes.append(reinterpret_cast<const char*>(&index), sizeof(index));
    values.append(reinterpret_cast<const char*>(&differences_[i]), sizeof(float));
  }
  return indexes + values;
}

}  // namespace lockstep

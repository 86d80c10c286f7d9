#include "lockstep/common/step/partial_sums.h"

#include <algorithm>

#include "absl/numeric/bits.h"

namespace lockstep {
namespace {

constexpr uint64_t kSmallSumsBytes = 16 << 20;
constexpr int64_t kStagedContributions = 3;

int64_t FloorLog2(int64_t n) { return absl::bit_width(static_cast<uint64_t>(n)) - 1; }

}  // namespace

int64_t LeastPartialSums(int64_t slots) { return std::max<int64_t>(1, FloorLog2(slots)); }

int64_t MostPartialSums(int64_t slots) { return slots / 2 + slots % 2; }

int64_t DefaultPartialSums(int64_t slots, uint64_t bytes) {
  const int64_t levels = slots == 1 ? 1 : FloorLog2(slots - 1) + 1;
  const auto small = static_cast<int64_t>(kSmallSumsBytes / std::max<uint64_t>(1, bytes)) + 1;
  return std::min(MostPartialSums(slots), std::max(levels, small));
}

int64_t DefaultStagedContributions(uint64_t bytes) {
  return std::max(kStagedContributions, static_cast<int64_t>(kSmallSumsBytes / std::max<uint64_t>(1, bytes)));
}

}  // namespace lockstep

#include "lockstep/common/step/slot_block.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

int64_t CeilPowerOfTwo(int64_t n) { return static_cast<int64_t>(absl::bit_ceil(static_cast<uint64_t>(n))); }

}  // namespace

std::string SlotBlock::ToString() const { return absl::StrCat("slots [", first, ",", end(), ")"); }

std::string DescribeBlock(int64_t step, const SlotBlock& block) {
  return absl::StrCat(block.ToString(), " of step ", step);
}

bool IsTreeNode(const SlotBlock& block, int64_t slots) {
  if (block.first < 0 || block.count < 1 || block.first >= slots || block.count > slots - block.first) return false;
  const int64_t size = CeilPowerOfTwo(block.count);
  return block.first % size == 0 && block.end() == std::min(block.first + size, slots);
}

absl::optional<SlotBlock> SiblingOf(const SlotBlock& block, int64_t slots) {
  for (int64_t half = CeilPowerOfTwo(block.count); half < slots; half *= 2) {
    const int64_t size = 2 * half;
    const int64_t begin = block.first / size * size;
    const int64_t end = std::min(begin + size, slots);
    // A block cut off at `slots` may fill its parent, and is then the same node as its parent.
    if (end - begin == block.count) continue;
    if (block.first == begin) return SlotBlock{begin + half, end - begin - half};
    return SlotBlock{begin, half};
  }
  return absl::nullopt;
}

SlotBlock Join(const SlotBlock& a, const SlotBlock& b) { return {std::min(a.first, b.first), a.count + b.count}; }

}  // namespace lockstep

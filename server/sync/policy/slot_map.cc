#include "lockstep/server/sync/policy/slot_map.h"

#include <algorithm>

#include "absl/numeric/bits.h"

namespace lockstep {
namespace {

int64_t CeilPowerOfTwo(int64_t n) { return static_cast<int64_t>(absl::bit_ceil(static_cast<uint64_t>(n))); }

}  // namespace

SlotMap::SlotMap(int64_t slots)
    : slots_(slots), width_(CeilPowerOfTwo(slots)), state_(slots), nodes_(static_cast<size_t>(2 * width_)) {
  Clear();
}

void SlotMap::Clear() {
  std::fill(state_.begin(), state_.end(), Slot());
  for (int64_t slot = 0; slot < width_; ++slot) UpdateLeaf(slot);
  for (int64_t width = 2; width <= width_; width *= 2) {
    for (int64_t node = width_ / width; node < 2 * (width_ / width); ++node) {
      UpdateNode(static_cast<size_t>(node), width);
    }
  }
}

void SlotMap::UpdateLeaf(int64_t slot) {
  Node& leaf = nodes_[static_cast<size_t>(width_ + slot)];
  const bool real = slot < slots_;
  leaf.uncovered = real && !state_[slot].covered ? 1 : 0;
  leaf.separate = real && state_[slot].separate;
  leaf.largest_free = !real || (!state_[slot].covered && state_[slot].copies == 0) ? 1 : 0;
}

void SlotMap::UpdateNode(size_t node, int64_t width) {
  const Node &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
  const bool separate = left.separate || right.separate;
  const bool whole = !separate && left.largest_free + right.largest_free == width;
  nodes_[node].separate = separate;
  nodes_[node].largest_free = whole ? width : std::max(left.largest_free, right.largest_free);
  nodes_[node].uncovered = left.uncovered + right.uncovered;
}

void SlotMap::Update(int64_t slot) {
  UpdateLeaf(slot);
  int64_t width = 2;
  for (size_t node = static_cast<size_t>(width_ + slot) / 2; node >= 1; node /= 2) {
    UpdateNode(node, width);
    width *= 2;
  }
}

void SlotMap::Separate(int64_t slot) {
  state_[slot].separate = true;
  Update(slot);
}

void SlotMap::CountCopies(const SlotBlock& block, int by) {
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    state_[slot].copies += by;
    Update(slot);
  }
}

void SlotMap::Cover(const SlotBlock& block) {
  for (int64_t slot = block.first; slot < block.end(); ++slot) {
    state_[slot].covered = true;
    Update(slot);
  }
}

size_t SlotMap::IndexOf(const SlotBlock& block, int64_t* width) const {
  *width = CeilPowerOfTwo(block.count);
  return static_cast<size_t>(width_ / *width + block.first / *width);
}

bool SlotMap::AnyFree() const { return FindFree(1).has_value(); }

bool SlotMap::IsFree(const SlotBlock& block) const {
  int64_t width = 0;
  const size_t node = IndexOf(block, &width);
  return nodes_[node].largest_free == width;
}

bool SlotMap::IsCovered(const SlotBlock& block) const {
  int64_t width = 0;
  return nodes_[IndexOf(block, &width)].uncovered == 0;
}

absl::optional<int64_t> SlotMap::FirstUncovered() const {
  if (nodes_[1].uncovered == 0) return absl::nullopt;
  size_t node = 1;
  while (node < static_cast<size_t>(width_)) {
    node *= 2;
    if (nodes_[node].uncovered == 0) ++node;
  }
  return static_cast<int64_t>(node) - width_;
}

absl::optional<SlotBlock> SlotMap::FindFree(int64_t size) const {
  size_t node = 1;
  int64_t first = 0;
  if (nodes_[node].largest_free < size) return absl::nullopt;
  for (int64_t width = width_; width > size; width /= 2) {
    node *= 2;
    if (nodes_[node].largest_free >= size) continue;
    ++node;
    first += width / 2;
  }
  if (first >= slots_) return absl::nullopt;
  return SlotBlock{first, std::min(size, slots_ - first)};
}

}  // namespace lockstep

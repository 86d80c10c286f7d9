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

void UnfinishedBlocks::Index(const Blocks::value_type& block) {
  if (block.second.size() == 1) single_.insert({block.second.front(), block.first});
  newest_[block.first.second].insert({block.second.back(), block.first});
}

void UnfinishedBlocks::Unindex(const Blocks::value_type& block) {
  single_.erase({block.second.front(), block.first});
  newest_[block.first.second].erase({block.second.back(), block.first});
}

void UnfinishedBlocks::Erase(Blocks::iterator block) {
  Unindex(*block);
  spare_ = blocks_.extract(block);
}

UnfinishedBlocks::Blocks::iterator UnfinishedBlocks::FindOrAdd(const Key& key) {
  if (spare_.empty()) return blocks_.try_emplace(key).first;
  spare_.key() = key;
  spare_.mapped().clear();
  auto inserted = blocks_.insert(std::move(spare_));
  spare_ = std::move(inserted.node);  // the node was already there
  return inserted.position;
}

void UnfinishedBlocks::Add(const SlotBlock& block, absl::Time issued) {
  const auto it = FindOrAdd({block.first, block.count});
  Copies& copies = it->second;
  if (!copies.empty()) Unindex(*it);
  copies.insert(std::upper_bound(copies.begin(), copies.end(), issued), issued);
  Index(*it);
}

void UnfinishedBlocks::Remove(const SlotBlock& block, absl::Time issued) {
  const auto it = blocks_.find({block.first, block.count});
  if (it == blocks_.end()) return;  // the block was covered
  Copies& copies = it->second;
  const auto copy = std::lower_bound(copies.begin(), copies.end(), issued);
  if (copy == copies.end() || *copy != issued) return;  // the block was covered, and other copies were begun since
  if (copies.size() == 1) return Erase(it);
  Unindex(*it);
  copies.erase(copy);
  Index(*it);
}

void UnfinishedBlocks::OnCovered(const SlotBlock& block, const SlotMap& slots) {
  const auto erase_covered = [&](Blocks::iterator it) {
    const auto next = std::next(it);
    if (slots.IsCovered({it->first.first, it->first.second})) Erase(it);
    return next;
  };
  // Erase the block itself, the blocks within it, and those that start at the same slot.
  for (auto it = blocks_.lower_bound({block.first, 0}); it != blocks_.end() && it->first.first < block.end();) {
    it = erase_covered(it);
  }
  // Erase the blocks that contain it.
  for (int64_t width = 2; width < 2 * slots.slots(); width *= 2) {
    const int64_t first = block.first / width * width;
    const auto it = blocks_.find({first, std::min(width, slots.slots() - first)});
    if (it != blocks_.end()) erase_covered(it);
  }
}

void UnfinishedBlocks::Clear() {
  blocks_.clear();
  single_.clear();
  for (auto& group : newest_) group.second.clear();
}

absl::optional<absl::Time> UnfinishedBlocks::NewestCopy(const SlotBlock& block) const {
  const auto it = blocks_.find({block.first, block.count});
  if (it == blocks_.end()) return absl::nullopt;
  return it->second.back();
}

bool UnfinishedBlocks::AnyDue(absl::Time now, const SlowAfter& slow_after) const {
  return Choose(/*single=*/true, now, slow_after).has_value();
}

absl::optional<std::pair<absl::Time, UnfinishedBlocks::Key>> UnfinishedBlocks::ChooseSingle(
    absl::Time now, absl::Duration usual_slot) const {
  constexpr double kFresh = 0.25, kLate = 1.25;
  if (single_.empty()) return absl::nullopt;
  const auto& oldest = single_.front();
  if (now - oldest.first >= kLate * oldest.second.second * usual_slot) return oldest;
  const std::pair<absl::Time, Key> fresh(now - kFresh * usual_slot, Key());
  const auto it = std::lower_bound(single_.begin(), single_.end(), fresh);
  if (it == single_.end()) return absl::nullopt;
  return *it;
}

absl::optional<SlotBlock> UnfinishedBlocks::Choose(bool single, absl::Time now, const SlowAfter& slow_after) const {
  absl::optional<std::pair<absl::Time, Key>> choice;
  if (single) choice = ChooseSingle(now, slow_after.usual_slot);
  for (const auto& group : newest_) {
    if (group.second.empty()) continue;
    const auto& oldest = group.second.front();
    if (now <= oldest.first + slow_after.block + slow_after.slot * group.first) continue;
    const std::pair<absl::Time, Key> slow(blocks_.at(oldest.second).front(), oldest.second);
    if (!choice || slow < *choice) choice = slow;
  }
  if (!choice) return absl::nullopt;
  return SlotBlock{choice->second.first, choice->second.second};
}

}  // namespace lockstep

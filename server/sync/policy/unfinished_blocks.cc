#include "lockstep/server/sync/policy/unfinished_blocks.h"

#include <algorithm>

namespace lockstep {

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
  spare_ = std::move(inserted.node);  // it was there
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
  if (it == blocks_.end()) return;  // it was covered
  Copies& copies = it->second;
  const auto copy = std::lower_bound(copies.begin(), copies.end(), issued);
  if (copy == copies.end() || *copy != issued) return;  // it was covered, and others were begun since
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
  // The block, what lies in it, and what begins with it.
  for (auto it = blocks_.lower_bound({block.first, 0}); it != blocks_.end() && it->first.first < block.end();) {
    it = erase_covered(it);
  }
  // What it lies in.
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

#include "lockstep/server/ps/slot_tree.h"

#include <algorithm>
#include <utility>

#include "lockstep/common/tensor/rounding.h"

namespace lockstep {

bool SlotTree::Covers(const SlotBlock& block) const {
  return complete_ ||
         std::any_of(nodes_.begin(), nodes_.end(), [&block](const Node& node) { return node.block.Contains(block); });
}

void SlotTree::Place(Node* node) const {
  const bool home_is_taken =
      std::any_of(nodes_.begin(), nodes_.end(), [this](const Node& other) { return other.sum == memory_.home; });
  if (memory_.home != nullptr && !home_is_taken) {
    node->sum = memory_.home;
    return;
  }
  node->buffer = memory_.pool != nullptr
                     ? memory_.pool->Get()
                     : std::make_shared<AlignedBuffer>(static_cast<size_t>(elements_) * sizeof(float));
  node->sum = node->buffer->as<float>();
}

SlotTree::Result SlotTree::Add(const SlotBlock& block, const FloatChunks& content, int64_t first) {
  Result result;
  if (Covers(block)) return result;
  nodes_.erase(
      std::remove_if(nodes_.begin(), nodes_.end(), [&block](const Node& node) { return block.Contains(node.block); }),
      nodes_.end());
  result.outcome = Outcome::kAdded;

  const auto take_sibling = [this](const SlotBlock& of, Node* out) {
    const auto sibling = SiblingOf(of, slots_);
    if (!sibling) return false;
    const auto it = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.block == *sibling; });
    if (it == nodes_.end()) return false;
    *out = std::move(*it);
    nodes_.erase(it);
    return true;
  };

  // The first addition reads the content where it lies; the addition of two floats commutes, so it does
  // not matter which of the two siblings came first.
  Node node;
  if (take_sibling(block, &node)) {
    content.AddTo(first, elements_, node.sum);
    RoundTo(type_, elements_, node.sum);
    node.block = Join(node.block, block);
  } else {
    node.block = block;
    if (block.count == slots_) {
      complete_ = true;
      result.outcome = Outcome::kComplete;
      result.sum = content.Contiguous(first, elements_);
      if (result.sum != nullptr) return result;
    }
    Place(&node);
    content.CopyTo(first, elements_, node.sum);
  }
  for (Node sibling; take_sibling(node.block, &sibling);) {
    FloatChunks(sibling.sum, elements_).AddTo(0, elements_, node.sum);
    RoundTo(type_, elements_, node.sum);
    node.block = Join(node.block, sibling.block);
  }
  nodes_.push_back(std::move(node));
  if (nodes_.back().block.count == slots_) {
    complete_ = true;
    result.outcome = Outcome::kComplete;
    result.sum = nodes_.back().sum;
  }
  return result;
}

void SlotTree::ReleaseMemory() { nodes_.clear(); }

}  // namespace lockstep

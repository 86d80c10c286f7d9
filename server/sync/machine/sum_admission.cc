#include "lockstep/server/sync/machine/sum_admission.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "lockstep/common/step/partial_sums.h"

namespace lockstep {
namespace {

int64_t CeilPowerOfTwo(int64_t n) { return static_cast<int64_t>(absl::bit_ceil(static_cast<uint64_t>(n))); }

}  // namespace

SumAdmission::SumAdmission(int64_t slots, int64_t bound)
    : slots_(slots),
      bound_(bound),
      width_(CeilPowerOfTwo(slots)),
      nodes_(bound < MostPartialSums(slots) ? static_cast<size_t>(2 * width_) : 0) {
  Restart();
}

std::vector<uint64_t> SumAdmission::Restart() {
  std::vector<uint64_t> waited;
  for (const auto& waiting : waiting_) waited.push_back(std::get<2>(waiting));
  waiting_.clear();
  contributions_.clear();
  room_ = false;
  std::fill(nodes_.begin(), nodes_.end(), Node());
  for (size_t node = nodes_.size() / 2; node-- > 1;) UpdateNode(node);
  return waited;
}

size_t SumAdmission::IndexOf(const SlotBlock& block) const {
  const int64_t width = CeilPowerOfTwo(block.count);
  return static_cast<size_t>(width_ / width + block.first / width);
}

void SumAdmission::UpdateNode(size_t node) {
  Node& sum = nodes_[node];
  const Node& left = nodes_[2 * node];
  const Node& right = nodes_[2 * node + 1];
  const auto width = width_ / static_cast<int64_t>(absl::bit_floor(node));
  const int64_t middle = static_cast<int64_t>(node - absl::bit_floor(node)) * width + width / 2;
  const bool same = middle >= slots_;  // equals its left child
  sum.whole = sum.whole || (left.whole && (same || right.whole));
  sum.may_be_complete = sum.whole || sum.begun || (left.may_be_complete && (same || right.may_be_complete));
  sum.most = sum.most_in_order = 0;
  if (sum.whole) return;
  if (same) {
    sum.most = left.most;
    sum.most_in_order = left.most_in_order;
    return;
  }
  const int64_t of_right = std::max(right.most, right.may_be_complete ? int64_t{1} : 0);
  if (!left.whole) {
    if (!right.whole) sum.most = left.most + right.most;
    if (right.may_be_complete) sum.most = std::max(sum.most, left.most + 1);
    sum.most_in_order = left.most_in_order + of_right;
  }
  if (!right.whole) {
    if (left.may_be_complete) sum.most = std::max(sum.most, 1 + right.most);
    sum.most_in_order = std::max(sum.most_in_order, 1 + right.most_in_order);
  }
}

void SumAdmission::Update(size_t node) {
  if (node >= static_cast<size_t>(width_)) {
    nodes_[node].may_be_complete = nodes_[node].whole || nodes_[node].begun;
  } else {
    UpdateNode(node);
  }
  while ((node /= 2) >= 1) UpdateNode(node);
}

bool SumAdmission::TryAdmit(const SlotBlock& block) {
  const size_t node = IndexOf(block);
  if (nodes_[node].begun) return true;
  nodes_[node].begun = true;
  Update(node);
  if (nodes_[1].most_in_order <= bound_) return true;
  nodes_[node].begun = false;
  Update(node);
  return false;
}

SumAdmission::Verdict SumAdmission::Ask(uint64_t session, const SlotBlock& block) {
  if (!bounded()) return Verdict::kSum;
  const auto [it, asks_first] = contributions_.try_emplace(session);
  Contribution& contribution = it->second;
  if (contribution.verdict != Verdict::kWait) return contribution.verdict;
  contribution.block = block;
  if (TryAdmit(block)) {
    contribution.verdict = Verdict::kSum;
    if (!asks_first) waiting_.erase(OrderOf(session, block));
  } else {
    waiting_.insert(OrderOf(session, block));
  }
  return contribution.verdict;
}

void SumAdmission::End(uint64_t session, const SlotBlock& block, bool covers) {
  if (!bounded()) return;
  if (const auto it = contributions_.find(session); it != contributions_.end()) {
    waiting_.erase(OrderOf(session, it->second.block));
    contributions_.erase(it);
  }
  if (!covers) return;
  const size_t node = IndexOf(block);
  nodes_[node].whole = true;
  Update(node);
  room_ = true;
}

std::vector<uint64_t> SumAdmission::Admit() {
  std::vector<uint64_t> admitted;
  if (!room_) return admitted;
  room_ = false;
  for (const auto& waiting : FlatSet<std::tuple<int64_t, int64_t, uint64_t>>(waiting_)) {
    const uint64_t session = std::get<2>(waiting);
    if (Ask(session, contributions_.at(session).block) == Verdict::kSum) admitted.push_back(session);
  }
  return admitted;
}

void SumAdmission::Drop(uint64_t session) {
  Contribution& contribution = contributions_.at(session);
  waiting_.erase(OrderOf(session, contribution.block));
  contribution.verdict = Verdict::kDrop;
}

bool SumAdmission::HasVerdict(uint64_t session, Verdict verdict) const {
  const auto it = contributions_.find(session);
  return it != contributions_.end() && it->second.verdict == verdict;
}

}  // namespace lockstep

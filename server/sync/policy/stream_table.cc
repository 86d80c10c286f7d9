#include "lockstep/server/sync/policy/stream_table.h"

#include <algorithm>

namespace lockstep {

BatchAddress StreamTable::Attach(uint64_t session) {
  const auto [it, added] = streams_.try_emplace(session);
  if (added) {
    const auto free = std::find(is_read_.begin(), is_read_.end(), false);
    it->second = static_cast<size_t>(free - is_read_.begin());
    if (free == is_read_.end()) {
      is_read_.push_back(false);
      positions_.push_back(0);
    }
    is_read_[it->second] = true;
  }
  return {static_cast<int64_t>(it->second), positions_[it->second]};
}

void StreamTable::Detach(uint64_t session) {
  const auto it = streams_.find(session);
  if (it == streams_.end()) return;
  is_read_[it->second] = false;
  streams_.erase(it);
}

bool StreamTable::IsNext(const BatchAddress& batch) const {
  return batch.stream < static_cast<int64_t>(positions_.size()) && positions_[batch.stream] == batch.position;
}

void StreamTable::Advance(const BatchAddress& batch) {
  if (IsNext(batch)) ++positions_[batch.stream];
}

void StreamTable::Restore(const std::vector<int64_t>& positions) {
  std::fill(positions_.begin(), positions_.end(), 0);
  std::copy(positions.begin(), positions.end(), positions_.begin());
}

}  // namespace lockstep

#include "lockstep/server/sync/policy/stream_table.h"

#include <algorithm>
#include <utility>

namespace lockstep {

StreamTable::StreamTable(std::vector<int64_t> positions) : committed_(std::move(positions)) {
  for (const int64_t position : committed_) streams_.push_back({position});
}

absl::optional<BatchAddress> StreamTable::Attach(uint64_t session) {
  auto reader = readers_.find(session);
  if (reader == readers_.end()) {
    const auto is_free = [](const Stream& stream) { return !stream.is_read && !stream.ended; };
    const auto free = std::find_if(streams_.begin(), streams_.end(), is_free);
    const auto number = static_cast<size_t>(free - streams_.begin());
    if (free == streams_.end()) {
      if (any_ended_) return absl::nullopt;
      streams_.emplace_back();
    }
    streams_[number].is_read = true;
    reader = readers_.emplace(session, number).first;
  }
  return BatchAddress{static_cast<int64_t>(reader->second), streams_[reader->second].position};
}

void StreamTable::Detach(uint64_t session) {
  const auto reader = readers_.find(session);
  if (reader == readers_.end()) return;
  streams_[reader->second].is_read = false;
  readers_.erase(reader);
}

bool StreamTable::Reads(uint64_t session, int64_t stream) const {
  const auto reader = readers_.find(session);
  return reader != readers_.end() && static_cast<int64_t>(reader->second) == stream;
}

bool StreamTable::IsNext(const BatchAddress& batch) const {
  return batch.stream < static_cast<int64_t>(streams_.size()) &&
         streams_[static_cast<size_t>(batch.stream)].position == batch.position;
}

void StreamTable::Advance(const BatchAddress& batch) {
  if (!IsNext(batch)) return;
  const auto number = static_cast<size_t>(batch.stream);
  ++streams_[number].position;
  advanced_.push_back(number);
}

void StreamTable::End(uint64_t session) {
  const auto reader = readers_.find(session);
  if (reader == readers_.end()) return;
  streams_[reader->second].ended = any_ended_ = true;
  Detach(session);
}

bool StreamTable::all_ended() const {
  return !streams_.empty() &&
         std::all_of(streams_.begin(), streams_.end(), [](const Stream& stream) { return stream.ended; });
}

void StreamTable::Commit() {
  committed_.resize(streams_.size());
  for (const size_t number : advanced_) committed_[number] = streams_[number].position;
  advanced_.clear();
}

void StreamTable::Rollback() {
  for (const size_t number : advanced_) {
    streams_[number].position = number < committed_.size() ? committed_[number] : 0;
    streams_[number].ended = false;  // its last batches are given out again
  }
  any_ended_ = std::any_of(streams_.begin(), streams_.end(), [](const Stream& stream) { return stream.ended; });
  advanced_.clear();
}

}  // namespace lockstep

#include "lockstep/server/chief/reads/variable_reads.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/tensor/dtype.h"

namespace lockstep {
namespace {

// Parts are cut at multiples of kCut bytes, so that no element is split. Each part has at least kLeastPart bytes,
// unless the variable ends earlier.
constexpr int64_t kCut = 8;
constexpr int64_t kLeastPart = 64 << 10;
// Estimated size of a part without its name, shape dimensions and content, in bytes.
constexpr int64_t kPartBytes = 32;
constexpr int64_t kDimensionBytes = 10;
// Maximum length of a name in an error message, in bytes.
constexpr size_t kMostShown = 200;

int64_t HeaderBytes(const SnapshotEntry& entry) {
  return static_cast<int64_t>(entry.key.size()) + kPartBytes + kDimensionBytes * entry.shape.rank();
}

void FillHeader(const SnapshotEntry& entry, v1::VariablePart* part) {
  part->set_name(entry.key);
  part->set_dtype(entry.dtype);
  for (const int64_t dim : entry.shape.dims()) part->add_shape(dim);
}

// Quotes a name for an error message, whose size gRPC limits.
std::string Quoted(const std::string& name) {
  if (name.size() <= kMostShown) return absl::StrCat("\"", absl::Utf8SafeCHexEscape(name), "\"");
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, kMostShown)), "...\"");
}

absl::Status WrongPosition(int64_t position, int64_t total) {
  return absl::InvalidArgumentError(
      absl::StrCat("position ", position, " was not in a reply: the read has ", total, " bytes"));
}

}  // namespace

absl::StatusOr<v1::ReadVariablesReply> VariableReads::Read(const v1::ReadVariablesRequest& request) {
  const bool begins = request.read_id() == 0 && !request.names_only();
  while (true) {
    const uint64_t fresh_id = begins ? options_.draw_id() : 0;
    MutexLock lock(&mutex_);
    Expire(options_.clock->Now());
    if (request.names_only()) return ListNames(request);
    if (!begins) return Continue(request);
    if (!table_.Knows(fresh_id)) return Begin(request, fresh_id);
  }
}

absl::StatusOr<v1::ReadVariablesReply> VariableReads::ListNames(const v1::ReadVariablesRequest& request) {
  if (request.read_id() != 0) return absl::InvalidArgumentError("names_only in a call that continues a read");
  ASSIGN_OR_RETURN(const auto selection, Select(request));
  v1::ReadVariablesReply reply;
  reply.set_step(options_.step());
  RETURN_IF_ERROR(Fill(*selection, request.position(), /*snapshot=*/nullptr, &reply));
  return reply;
}

absl::StatusOr<v1::ReadVariablesReply> VariableReads::Begin(const v1::ReadVariablesRequest& request, uint64_t id) {
  RETURN_IF_ERROR(options_.memory);
  if (request.position() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("position ", request.position(), " in a call without read_id, which begins at 0"));
  }
  ASSIGN_OR_RETURN(auto selection, Select(request));
  const absl::Time now = options_.clock->Now();
  switch (table_.Choose(options_.step(), now)) {
    case ReadTable::Choice::kFull:
      return absl::UnavailableError(absl::StrCat(options_.limits.max_reads, " reads are in progress"));
    case ReadTable::Choice::kCurrent:
      pinned_.reset();  // first, so that there are never two snapshots
      pinned_ = options_.take_snapshot();
      break;
    case ReadTable::Choice::kPinned:
      break;
  }
  table_.Begin(id, pinned_->step, now);
  selections_[id] = std::move(selection);
  DropUnread();
  v1::ReadVariablesRequest first;
  first.set_read_id(id);
  return Continue(first);
}

absl::StatusOr<v1::ReadVariablesReply> VariableReads::Continue(const v1::ReadVariablesRequest& request) {
  const uint64_t id = request.read_id();
  if (request.name_size() > 0) {
    return absl::InvalidArgumentError(absl::StrCat("a call that continues a read has ", request.name_size(),
                                                   " names; only the one that begins it may have any"));
  }
  RETURN_IF_ERROR(table_.Use(id, options_.clock->Now()));
  v1::ReadVariablesReply reply;
  reply.set_read_id(id);
  reply.set_step(pinned_->step);
  RETURN_IF_ERROR(Fill(*selections_.at(id), request.position(), &*pinned_, &reply));
  if (reply.next_position() == 0) {
    table_.End(id);
    DropUnread();
  }
  return reply;
}

void VariableReads::LearnEntries() {
  if (all_ != nullptr) return;
  entries_ = EntriesOf(pinned_ ? *pinned_ : options_.take_snapshot());
  auto all = std::make_shared<Selection>();
  int64_t end = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    by_key_[entries_[i].key] = i;
    all->entries.push_back(i);
    all->ends.push_back(end += static_cast<int64_t>(entries_[i].bytes));
  }
  all_ = std::move(all);
}

absl::StatusOr<std::shared_ptr<const VariableReads::Selection>> VariableReads::Select(
    const v1::ReadVariablesRequest& request) {
  LearnEntries();
  if (request.name_size() == 0) return all_;
  auto selection = std::make_shared<Selection>();
  absl::flat_hash_set<size_t> named;
  int64_t end = 0;
  for (const std::string& name : request.name()) {
    const auto it = by_key_.find(name);
    if (it == by_key_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no variable ", Quoted(name), "; a call with names_only lists what there is"));
    }
    if (!named.insert(it->second).second) {
      return absl::InvalidArgumentError(absl::StrCat("variable ", Quoted(name), " twice"));
    }
    selection->entries.push_back(it->second);
    selection->ends.push_back(end += static_cast<int64_t>(entries_[it->second].bytes));
  }
  return std::shared_ptr<const Selection>(std::move(selection));
}

absl::Status VariableReads::Fill(const Selection& selection, int64_t position, const VariableSnapshot* snapshot,
                                 v1::ReadVariablesReply* reply) const {
  const int64_t total = selection.ends.back();
  if (position < 0 || position >= total) return WrongPosition(position, total);
  size_t i = static_cast<size_t>(std::upper_bound(selection.ends.begin(), selection.ends.end(), position) -
                                 selection.ends.begin());
  for (auto budget = static_cast<int64_t>(options_.reply_bytes); budget > 0 && position < total; ++i) {
    const SnapshotEntry& entry = entries_[selection.entries[i]];
    const int64_t left = selection.ends[i] - position;
    const int64_t offset = static_cast<int64_t>(entry.bytes) - left;
    if (offset % static_cast<int64_t>(SizeOf(entry.dtype)) != 0) return WrongPosition(position, total);
    if (snapshot == nullptr && offset != 0) return WrongPosition(position, total);
    v1::VariablePart* const part = reply->add_part();
    if (offset == 0) {
      FillHeader(entry, part);
      budget -= HeaderBytes(entry);
    }
    int64_t taken = left;
    if (snapshot != nullptr) {
      taken = std::min(left, std::max(budget, kLeastPart) / kCut * kCut);
      const absl::string_view bytes = BytesOf(*snapshot, entry).substr(static_cast<size_t>(offset));
      part->set_content(bytes.data(), static_cast<size_t>(taken));
      budget -= taken;
    }
    position += taken;
    if (taken < left) break;
  }
  reply->set_next_position(position < total ? position : 0);
  return absl::OkStatus();
}

void VariableReads::DropUnread() {
  for (auto it = selections_.begin(); it != selections_.end();) {
    it = table_.reads(it->first) ? std::next(it) : selections_.erase(it);
  }
  if (!table_.pinned_step()) pinned_.reset();
}

void VariableReads::Expire(absl::Time now) {
  table_.Expire(now);
  DropUnread();
}

void VariableReads::ForgetIdle() {
  MutexLock lock(&mutex_);
  Expire(options_.clock->Now());
}

absl::optional<int64_t> VariableReads::pinned_step() const {
  MutexLock lock(&mutex_);
  return table_.pinned_step();
}

}  // namespace lockstep

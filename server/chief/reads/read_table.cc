#include "lockstep/server/chief/reads/read_table.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace lockstep {

ReadTable::Choice ReadTable::Choose(int64_t current, absl::Time now) const {
  if (!pinned_step_) return Choice::kCurrent;
  if (*pinned_step_ != current && now - pinned_at_ >= limits_.grace) return Choice::kCurrent;
  return num_reading() < limits_.max_reads ? Choice::kPinned : Choice::kFull;
}

void ReadTable::Begin(uint64_t id, int64_t step, absl::Time now) {
  if (pinned_step_ != step) {
    for (auto& entry : reads_) entry.second.cut = true;
    pinned_step_ = step;
    pinned_at_ = now;
  }
  reads_[id] = {step, now, /*cut=*/false};
}

absl::Status ReadTable::Use(uint64_t id, absl::Time now) {
  const auto it = reads_.find(id);
  if (it == reads_.end()) {
    return absl::AbortedError(absl::StrCat("read ", id, " is unknown: it is over, it was not continued for ",
                                           absl::FormatDuration(limits_.expiry), ", or another chief knew it"));
  }
  Read& read = it->second;
  if (read.cut) {
    return absl::ResourceExhaustedError(absl::StrCat("the values of step ", read.step,
                                                     " are gone: another read has begun at a newer step; begin again, "
                                                     "and read faster, or fewer variables"));
  }
  read.last_used = now;
  return absl::OkStatus();
}

void ReadTable::End(uint64_t id) {
  reads_.erase(id);
  UnpinIfUnread();
}

void ReadTable::Expire(absl::Time now) {
  for (auto it = reads_.begin(); it != reads_.end();) {
    it = now - it->second.last_used >= limits_.expiry ? reads_.erase(it) : std::next(it);
  }
  UnpinIfUnread();
}

bool ReadTable::reads(uint64_t id) const {
  const auto it = reads_.find(id);
  return it != reads_.end() && !it->second.cut;
}

size_t ReadTable::num_reading() const {
  return static_cast<size_t>(
      std::count_if(reads_.begin(), reads_.end(), [](const auto& entry) { return !entry.second.cut; }));
}

void ReadTable::UnpinIfUnread() {
  if (num_reading() == 0) pinned_step_.reset();
}

}  // namespace lockstep

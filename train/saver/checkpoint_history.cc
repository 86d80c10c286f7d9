#include "lockstep/train/saver/checkpoint_history.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace lockstep::train {
namespace {

// Returns true if both paths name the same file, like "./d/a" and "d/a". Deleting a checkpoint under one name must not
// delete a checkpoint that is listed under the other.
bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::absolute(a, error).lexically_normal() ==
                       std::filesystem::absolute(b, error).lexically_normal();
}

}  // namespace

CheckpointHistory::CheckpointHistory(int64_t max_to_keep, absl::Duration keep_every, absl::Time created)
    : max_to_keep_(max_to_keep), keep_every_(keep_every), next_kept_(created + keep_every) {}

void CheckpointHistory::Record(const std::string& prefix, absl::Time time) {
  if (max_to_keep_ == 0) return;
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(),
                                [&](const Entry& entry) { return IsSameFile(entry.prefix, prefix); }),
                 entries_.end());
  doomed_.erase(std::remove_if(doomed_.begin(), doomed_.end(),
                               [&](const std::string& doomed) { return IsSameFile(doomed, prefix); }),
                doomed_.end());
  entries_.push_back({prefix, time});
  while (entries_.size() > static_cast<uint64_t>(max_to_keep_)) {
    if (entries_.front().time > next_kept_) {
      next_kept_ += keep_every_;
    } else {
      doomed_.push_back(std::move(entries_.front().prefix));
    }
    entries_.erase(entries_.begin());
  }
}

void CheckpointHistory::Set(std::vector<Entry> entries) { entries_ = std::move(entries); }

std::vector<std::string> CheckpointHistory::TakeDoomed() { return std::exchange(doomed_, {}); }

}  // namespace lockstep::train

#ifndef LOCKSTEP_TRAIN_SAVER_CHECKPOINT_HISTORY_H_
#define LOCKSTEP_TRAIN_SAVER_CHECKPOINT_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::train {

// Decides which of a Saver's checkpoints to keep and which to delete. Does not access files. Not thread-safe.
class CheckpointHistory {
 public:
  struct Entry {
    std::string prefix;
    // Time of the save.
    absl::Time time;
  };

  // Keeps the newest `max_to_keep` checkpoints; if 0, nothing is remembered or deleted. An older checkpoint is kept
  // permanently if it was saved after `created` + `keep_every`; that time then advances by `keep_every`.
  CheckpointHistory(int64_t max_to_keep, absl::Duration keep_every, absl::Time created);

  // Records a saved checkpoint as the newest. Drops the oldest ones beyond the limit.
  void Record(const std::string& prefix, absl::Time time);
  // Replaces the entries, oldest first. The next Record drops entries beyond the limit.
  void Set(std::vector<Entry> entries);
  // The entries, oldest first.
  const std::vector<Entry>& entries() const { return entries_; }

  // Returns the dropped checkpoints that are not kept permanently, oldest first, each once.
  std::vector<std::string> TakeDoomed();
  // Puts back a checkpoint that could not be deleted, so that TakeDoomed returns it again.
  void PutBack(std::string prefix) { doomed_.push_back(std::move(prefix)); }

 private:
  const int64_t max_to_keep_;
  const absl::Duration keep_every_;
  absl::Time next_kept_;
  std::vector<Entry> entries_;
  std::vector<std::string> doomed_;
};

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_CHECKPOINT_HISTORY_H_

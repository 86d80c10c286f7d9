#ifndef LOCKSTEP_TRAIN_SAVER_CHECKPOINT_HISTORY_H_
#define LOCKSTEP_TRAIN_SAVER_CHECKPOINT_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::train {

// Which checkpoints of a Saver are kept, and which are to be deleted. It touches no file. Not thread-safe.
class CheckpointHistory {
 public:
  struct Entry {
    std::string prefix;
    // When it was saved.
    absl::Time time;
  };

  // The newest `max_to_keep` stay; 0: nothing is remembered, and nothing is deleted. One that falls out of these is
  // kept for good when it was saved after `created` + `keep_every`, a time that then moves by `keep_every`.
  CheckpointHistory(int64_t max_to_keep, absl::Duration keep_every, absl::Time created);

  // A checkpoint was saved: it is the newest. All beyond the limit fall out.
  void Record(const std::string& prefix, absl::Time time);
  // Replaces what is remembered, oldest first. What is beyond the limit falls out with the next Record.
  void Set(std::vector<Entry> entries);
  // Oldest first.
  const std::vector<Entry>& entries() const { return entries_; }

  // What fell out and is not kept for good, oldest first; each once.
  std::vector<std::string> TakeDoomed();
  // One of them could not be deleted: TakeDoomed returns it again.
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

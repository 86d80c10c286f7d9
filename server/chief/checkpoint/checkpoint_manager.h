#ifndef LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_MANAGER_H_
#define LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// Decides which checkpoints of a logdir are kept: lists each one that was written in the state file, and
// deletes those beyond the limit. Takes over the list of an earlier process from the state file; that
// process is dead, and its half-written files are removed. Deletes nothing outside the directory and no
// checkpoint that it does not list, or that a user's Saver wrote. Not thread-safe.
class CheckpointManager {
 public:
  struct Options {
    // The logdir. Must exist.
    std::string directory;
    // Checkpoints are <directory>/<base_name>-<step>.
    std::string base_name = "model.ckpt";
    // The newest this many are kept. 0 keeps all and lists only the newest.
    int64_t max_to_keep = 5;
    // Called before Record writes or deletes anything; Record returns its error. May be null.
    std::function<absl::Status()> may_record;
  };

  // InvalidArgument for a negative max_to_keep or a bad state file; that of the file system when state file or
  // directory cannot be read, and then nothing is removed.
  static absl::StatusOr<std::unique_ptr<CheckpointManager>> Create(FileSystem* fs, Options options);

  // The prefix for a checkpoint of this step.
  std::string PrefixOf(int64_t step) const;

  // A checkpoint was written: lists it as the newest, writes the state file, then deletes all listed ones
  // beyond the limit. A prefix that is listed already moves to the end. A checkpoint of an older step than one that
  // this manager has recorded is listed before that one: what a run starts from never goes back while it lives. Errors:
  // NotFound when its index is not in the directory; those of may_record and of writing the state file, and then
  // nothing is deleted. A deletion that fails is logged and tried again next time.
  absl::Status Record(const std::string& prefix);

  // The process starts from this checkpoint. If it is newer than the one that the state file names, an earlier process
  // died, or the disk failed, before it was listed, or even durable: lists it as Record does. One that is older was
  // chosen, or takes the place of a damaged one, which stays listed. Errors: those of Record.
  absl::Status Adopt(const std::string& prefix);

  // Prefixes, oldest first.
  std::vector<std::string> checkpoints() const;

 private:
  CheckpointManager(FileSystem* fs, Options options);
  // `names` is what is in the directory. What a user's Saver wrote is not taken over.
  absl::Status Recover(const v1::CheckpointState& state, const std::set<std::string>& names);
  // Removes what a process that died while writing left: temporary files, and data without an index of a checkpoint
  // that the state file does not list. What it removes is decided by these alone.
  void RemoveLeftovers(const v1::CheckpointState& state, const std::set<std::string>& names);
  void RemoveDoomed();
  std::string PathOf(absl::string_view name) const { return JoinPath(options_.directory, name); }

  FileSystem* const fs_;
  const Options options_;
  // What the state file named when this was made; empty: nothing.
  std::string found_newest_;
  // Without the directory; oldest first.
  std::vector<std::string> kept_;
  // The newest that was recorded, and its step if it has one.
  std::string newest_;
  absl::optional<int64_t> newest_step_;
  // No longer listed, still on disk.
  std::vector<std::string> doomed_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_MANAGER_H_

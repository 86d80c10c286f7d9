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
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// Decides which checkpoints in a logdir are kept. Lists each written checkpoint in the state file, and deletes those
// beyond the limit. Takes over the list of an earlier process from the state file, and removes that process's partially
// written files, because the process is assumed to be dead. Never deletes a file outside the directory, a checkpoint
// that it does not list, or one that a user's Saver wrote. Not thread-safe.
class CheckpointManager {
 public:
  struct Options {
    // The logdir. Must exist.
    std::string directory;
    // Checkpoints are <directory>/<base_name>-<step>.
    std::string base_name = "model.ckpt";
    // The number of newest checkpoints to keep. If 0, all are kept and only the newest is listed, as in TensorFlow's
    // Saver; setting a limit later does not delete the others.
    int64_t max_to_keep = 5;
    // Called before Record writes or deletes anything; Record returns its error. May be null.
    std::function<absl::Status()> may_record;
    // A checkpoint beyond the limit is unlisted but kept permanently if it was recorded at least this long after the
    // previous checkpoint kept this way or, if there is none, after the directory's first CheckpointManager was
    // created. The state file preserves these times across restarts.
    absl::Duration keep_every = absl::InfiniteDuration();
    // Provides the wall times that are recorded. May be null only if keep_every is infinite.
    Clock* clock = nullptr;
  };

  // Errors: InvalidArgument for a negative max_to_keep or an invalid state file; file system errors if the state file
  // or the directory cannot be read, in which case nothing is removed.
  static absl::StatusOr<std::unique_ptr<CheckpointManager>> Create(FileSystem* fs, Options options);

  // Returns the prefix of the checkpoint for this step.
  std::string PrefixOf(int64_t step) const;

  // Lists a checkpoint that was just written as the newest, writes the state file, then deletes all listed checkpoints
  // beyond the limit. A prefix that is already listed moves to the end. If this manager has already recorded a later
  // step, the checkpoint is listed before that one, so the checkpoint to resume from never goes back within one
  // process. Errors: NotFound if the index is not in the directory; errors of may_record and of writing the state file,
  // in which case nothing is deleted. A failed deletion is logged and retried after the next save.
  absl::Status Record(const std::string& prefix);

  // Records that the process starts from this checkpoint. If it is newer than the one that the state file names, lists
  // it as Record does, because an earlier process died, or the disk failed, before the checkpoint was listed or
  // durable. An older checkpoint was chosen deliberately, or replaces a damaged one, which stays listed. Errors: as for
  // Record.
  absl::Status Adopt(const std::string& prefix);

  // Prefixes, oldest first.
  std::vector<std::string> checkpoints() const;

 private:
  CheckpointManager(FileSystem* fs, Options options);
  // `names` are the files in the directory. Does not take over checkpoints that a user's Saver wrote.
  absl::Status Recover(const v1::CheckpointState& state, const std::set<std::string>& names);
  // Removes the leftovers of a process that died while writing: temporary files, and data files without an index unless
  // the state file lists their checkpoint. Depends only on the arguments.
  void RemoveLeftovers(const v1::CheckpointState& state, const std::set<std::string>& names);
  void RemoveDoomed();
  // Removes the oldest checkpoint from the list.
  void DropOldest();
  absl::Status WriteState() const;
  // Returns the current wall time, or the Unix epoch if keep_every is infinite.
  absl::Time WallTime() const;
  std::string PathOf(absl::string_view name) const { return JoinPath(options_.directory, name); }

  FileSystem* const fs_;
  const Options options_;
  // Base name of the newest checkpoint in the state file when this object was created. Empty if there was none, or if a
  // user's Saver wrote it.
  std::string found_newest_;
  struct Kept {
    // Base name.
    std::string name;
    absl::Time recorded;
  };
  // Oldest first.
  std::vector<Kept> kept_;
  // The time at which the last permanently kept checkpoint was recorded or, if there is none, at which the directory's
  // first CheckpointManager was created.
  absl::Time last_preserved_;
  // The newest recorded checkpoint, and its step if the name has one.
  std::string newest_;
  absl::optional<int64_t> newest_step_;
  // Checkpoints that are no longer listed but still on disk.
  std::vector<std::string> doomed_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_CHECKPOINT_CHECKPOINT_MANAGER_H_

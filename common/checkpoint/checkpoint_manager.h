#ifndef LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_MANAGER_H_
#define LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_MANAGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/io/file_system.h"
#include "proto/checkpoint.pb.h"

namespace lockstep {

// Which checkpoints of a logdir are kept: lists each one that was written in the state file, and
// deletes those that are too many. Takes the list of an earlier process over from the state file; that
// process is dead, its half-written files are removed. Deletes nothing outside the directory and no
// checkpoint that it does not list. Not thread-safe.
class CheckpointManager {
 public:
  struct Options {
    // The logdir. Must exist.
    std::string directory;
    // Checkpoints are <directory>/<base_name>-<step>.
    std::string base_name = "model.ckpt";
    // The newest this many are kept. 0 keeps all and lists only the newest.
    int64_t max_to_keep = 5;
    // Asked before Record writes or deletes anything; its error is Record's. Null: nobody is asked.
    std::function<absl::Status()> may_record;
  };

  // InvalidArgument for a negative max_to_keep or a bad state file; that of the file system when state file or
  // directory cannot be read, and then nothing is removed.
  static absl::StatusOr<std::unique_ptr<CheckpointManager>> Create(FileSystem* fs, Options options);

  // The prefix for a checkpoint of this step.
  std::string PrefixOf(int64_t step) const;

  // A checkpoint was written: lists it as the newest, writes the state file, then deletes all listed ones
  // that are too many. A prefix that is listed already moves to the end. One of an older step than that of a checkpoint
  // recorded before, by this manager, is listed before that: what a run starts from never goes back while it lives.
  // Errors: NotFound when its index is not in the directory; those of may_record and of writing the state file, and
  // then nothing is deleted. A failing deletion is logged and tried again next time.
  absl::Status Record(const std::string& prefix);

  // Prefixes, oldest first.
  std::vector<std::string> checkpoints() const;

 private:
  CheckpointManager(FileSystem* fs, Options options);
  // `names` is what is in the directory.
  void Recover(const CheckpointState& state, const std::set<std::string>& names);
  // Removes what a process that died while writing left: temporary files, and data without an index of a checkpoint
  // that the state file does not list. What it removes is decided by these alone.
  void RemoveLeftovers(const CheckpointState& state, const std::set<std::string>& names);
  void RemoveDoomed();
  std::string PathOf(absl::string_view name) const { return JoinPath(options_.directory, name); }

  FileSystem* const fs_;
  const Options options_;
  // Without the directory; oldest first.
  std::vector<std::string> kept_;
  // The newest that was recorded, and its step if it has one.
  std::string newest_;
  absl::optional<int64_t> newest_step_;
  // No longer listed, still on disk.
  std::vector<std::string> doomed_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_MANAGER_H_

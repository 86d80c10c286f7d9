#ifndef LOCKSTEP_TRAIN_SAVER_CHECKPOINTS_H_
#define LOCKSTEP_TRAIN_SAVER_CHECKPOINTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep::train {

// Functions that find the checkpoints of a run, of a Saver or of TensorFlow. A prefix is a checkpoint's path without
// the suffixes of its files. File system errors are returned, and never interpreted as an absent checkpoint.

// Returns the contents of a directory's state file, oldest checkpoint first, with relative paths joined to the
// directory; nullopt if there is no file. Returns InvalidArgument if it does not parse or names no newest checkpoint.
absl::StatusOr<absl::optional<v1::CheckpointState>> GetCheckpointState(
    const std::string& directory, const std::string& latest_filename = "checkpoint",
    FileSystem* fs = FileSystem::Real());

// Returns the newest checkpoint that the state file names. Returns nullopt if there is no state file, and also, logging
// an error, if the checkpoint's files are gone. Errors: those of GetCheckpointState.
absl::StatusOr<absl::optional<std::string>> LatestCheckpoint(const std::string& directory,
                                                             const std::string& latest_filename = "checkpoint",
                                                             FileSystem* fs = FileSystem::Real());

// Returns true if there is a checkpoint at the prefix.
absl::StatusOr<bool> CheckpointExists(const std::string& prefix, FileSystem* fs = FileSystem::Real());

// Returns the time when each checkpoint was written, in the given order. Omits checkpoints that do not exist.
absl::StatusOr<std::vector<absl::Time>> CheckpointModificationTimes(absl::Span<const std::string> prefixes,
                                                                    FileSystem* fs = FileSystem::Real());

// Deletes a checkpoint's files: the index, all data files, and TensorFlow's ".meta". Returns OK if there are none.
absl::Status RemoveCheckpoint(const std::string& prefix, FileSystem* fs = FileSystem::Real());

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_CHECKPOINTS_H_

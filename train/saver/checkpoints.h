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

// Which checkpoints there are: those of a run, of a Saver, of TensorFlow. A prefix is a checkpoint's path without the
// endings of its files. Errors of the file system are returned, never taken for an absent checkpoint.

// What the state file of a directory lists, oldest first; relative paths come back joined with the directory. nullopt
// without a file. InvalidArgument for one that does not parse or names no newest checkpoint.
absl::StatusOr<absl::optional<v1::CheckpointState>> GetCheckpointState(
    const std::string& directory, const std::string& latest_filename = "checkpoint",
    FileSystem* fs = FileSystem::Real());

// The newest checkpoint that the state file names. nullopt without a state file and, logged as an error, when its files
// are gone. Errors: those of GetCheckpointState.
absl::StatusOr<absl::optional<std::string>> LatestCheckpoint(const std::string& directory,
                                                             const std::string& latest_filename = "checkpoint",
                                                             FileSystem* fs = FileSystem::Real());

// Whether there is a checkpoint at the prefix.
absl::StatusOr<bool> CheckpointExists(const std::string& prefix, FileSystem* fs = FileSystem::Real());

// When each was written, in their order; those that do not exist are left out.
absl::StatusOr<std::vector<absl::Time>> CheckpointModificationTimes(absl::Span<const std::string> prefixes,
                                                                    FileSystem* fs = FileSystem::Real());

// Deletes its files: index, all data files, and TensorFlow's ".meta". OK when there are none.
absl::Status RemoveCheckpoint(const std::string& prefix, FileSystem* fs = FileSystem::Real());

}  // namespace lockstep::train

#endif  // LOCKSTEP_TRAIN_SAVER_CHECKPOINTS_H_

#ifndef LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STATE_H_
#define LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/checkpoint.pb.h"

namespace lockstep {

// Its name in a logdir.
inline constexpr char kCheckpointStateFile[] = "checkpoint";

// The text file "checkpoint" of a logdir, which lists its checkpoints, oldest first. People edit it
// to choose another one. Paths are stored relative to the directory, so that it can be moved.

// Absent file: nullopt. Relative entries come back joined with `directory`.
// Errors: InvalidArgument when the file does not parse or names no newest checkpoint; those of reading it.
absl::StatusOr<absl::optional<v1::CheckpointState>> ReadCheckpointState(
    FileSystem* fs, const std::string& directory, const std::string& file_name = kCheckpointStateFile);

// Writes the file atomically. `all_prefixes` is oldest first; `newest` is appended when it is not the last.
// Prefixes inside `directory` are stored relative to it.
absl::Status WriteCheckpointState(FileSystem* fs, const std::string& directory, const std::string& newest,
                                  std::vector<std::string> all_prefixes);
// The same under a name of the caller's, with the paths as they are in `state`.
absl::Status WriteCheckpointStateFile(FileSystem* fs, const std::string& path, const v1::CheckpointState& state);

// The state file's model_checkpoint_path when its index exists. nullopt without a state file and, logged, without that
// index. Errors: those of ReadCheckpointState, and those of the file system.
absl::StatusOr<absl::optional<std::string>> LatestCheckpoint(FileSystem* fs, const std::string& directory,
                                                             const std::string& file_name = kCheckpointStateFile);

// Whether there is an index at the prefix; an error when that cannot be known.
absl::StatusOr<bool> CheckpointExists(FileSystem* fs, const std::string& prefix);

// Removes index (first), data shards and .meta of a checkpoint. Absent files are no error.
absl::Status RemoveCheckpoint(FileSystem* fs, const std::string& prefix);

// The step in "…/model.ckpt-123"; nullopt when the prefix has none.
absl::optional<int64_t> StepOfCheckpoint(absl::string_view prefix);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STATE_H_

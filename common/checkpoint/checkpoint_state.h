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

// The state file's name in a logdir.
inline constexpr char kCheckpointStateFile[] = "checkpoint";

// The text file "checkpoint" of a logdir lists the logdir's checkpoints, oldest first. Users edit it to choose a
// different checkpoint. Paths are stored relative to the directory, so that it can be moved.

// Reads the file; returns nullopt if it is absent. Joins relative entries with `directory`. Errors: InvalidArgument if
// the file does not parse or does not name the newest checkpoint; file errors.
absl::StatusOr<absl::optional<v1::CheckpointState>> ReadCheckpointState(
    FileSystem* fs, const std::string& directory, const std::string& file_name = kCheckpointStateFile);

// Writes the file atomically. `all_prefixes` is oldest first; `newest` is appended unless it is the last one. Prefixes
// inside `directory` are stored relative to it. `times` has the timestamps to write: one for each prefix, or none.
absl::Status WriteCheckpointState(FileSystem* fs, const std::string& directory, const std::string& newest,
                                  std::vector<std::string> all_prefixes, v1::CheckpointState times = {});
// Writes the file at the caller's `path`, keeping the paths in `state` as they are.
absl::Status WriteCheckpointStateFile(FileSystem* fs, const std::string& path, const v1::CheckpointState& state);

// Returns the state file's model_checkpoint_path if its index exists. Returns nullopt if there is no state file or if
// that index is missing; the latter is logged. Errors: those of ReadCheckpointState; file system errors.
absl::StatusOr<absl::optional<std::string>> LatestCheckpoint(FileSystem* fs, const std::string& directory,
                                                             const std::string& file_name = kCheckpointStateFile);

// Returns true if an index exists at the prefix; an error if that cannot be determined.
absl::StatusOr<bool> CheckpointExists(FileSystem* fs, const std::string& prefix);

// Removes the index (first), the data shards and the .meta file of a checkpoint. Ignores absent files.
absl::Status RemoveCheckpoint(FileSystem* fs, const std::string& prefix);

// Returns the step in a prefix such as "d/model.ckpt-123", or nullopt if there is none.
absl::optional<int64_t> StepOfCheckpoint(absl::string_view prefix);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_CHECKPOINT_STATE_H_

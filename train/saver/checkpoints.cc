#include "lockstep/train/saver/checkpoints.h"

#include <memory>

#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"

namespace lockstep::train {

absl::StatusOr<absl::optional<v1::CheckpointState>> GetCheckpointState(const std::string& directory,
                                                                       const std::string& latest_filename,
                                                                       FileSystem* fs) {
  return ReadCheckpointState(fs, directory, latest_filename);
}

absl::StatusOr<absl::optional<std::string>> LatestCheckpoint(const std::string& directory,
                                                             const std::string& latest_filename, FileSystem* fs) {
  return lockstep::LatestCheckpoint(fs, directory, latest_filename);
}

absl::StatusOr<bool> CheckpointExists(const std::string& prefix, FileSystem* fs) {
  return lockstep::CheckpointExists(fs, prefix);
}

absl::StatusOr<std::vector<absl::Time>> CheckpointModificationTimes(absl::Span<const std::string> prefixes,
                                                                    FileSystem* fs) {
  std::vector<absl::Time> times;
  for (const std::string& prefix : prefixes) {
    const auto file = fs->NewRandomAccessFile(IndexPath(prefix));
    if (absl::IsNotFound(file.status())) continue;
    RETURN_IF_ERROR(file.status());
    times.push_back((*file)->modification_time());
  }
  return times;
}

absl::Status RemoveCheckpoint(const std::string& prefix, FileSystem* fs) {
  return lockstep::RemoveCheckpoint(fs, prefix);
}

}  // namespace lockstep::train

#ifndef LOCKSTEP_SERVER_CHIEF_RUN_DIRECTORY_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/io/file_system.h"
#include "proto/config.pb.h"

namespace lockstep {

// What a chief keeps in its logdir beside checkpoints and events: a lock that one chief holds, the epoch of
// its present life ("epoch"), and the configuration, model and data digest of the run ("lockstep.textproto"). A lock
// may be lost, to an administrator or to a network file system, so whoever writes for long asks CheckOwned before. Not
// thread-safe.
class RunDirectory {
 public:
  // Creates the directory, takes the lock and enters a new epoch.
  // Errors: FailedPrecondition when another chief holds the lock; DataLoss for a damaged epoch file; those of the file
  // system.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(FileSystem* fs, std::string path);

  // Whether a chief holds the lock at this moment. False for a directory that is not there, or cannot be read: Open
  // says why.
  static bool IsHeld(FileSystem* fs, const std::string& path);

  const std::string& path() const { return path_; }
  // One more than in the chief's life before.
  int64_t epoch() const { return epoch_; }

  // FailedPrecondition when another chief has taken the directory over, or the directory was taken away: the epoch in
  // it is not this chief's any more, or the lock is another file. Looks at files; from any thread.
  absl::Status CheckOwned() const;

  // nullopt in a new run. InvalidArgument when the file does not parse; an error when it cannot be read.
  absl::StatusOr<absl::optional<RunRecord>> ReadRecord() const;
  absl::Status WriteRecord(const RunRecord& record) const;

 private:
  RunDirectory(FileSystem* fs, std::string path, std::unique_ptr<FileSystem::Lock> lock);
  // nullopt when there is none yet.
  absl::StatusOr<absl::optional<int64_t>> ReadEpoch() const;
  absl::Status EnterEpoch();

  FileSystem* const fs_;
  const std::string path_;
  const std::unique_ptr<FileSystem::Lock> lock_;
  int64_t epoch_ = 0;
};

// FailedPrecondition when the weights of a run with `config` are not those of the run that `record` belongs to
// (WeightsConfig): names the first part that differs.
absl::Status CheckSameRun(const RunConfig& record, const RunConfig& config);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_DIRECTORY_H_

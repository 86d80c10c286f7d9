#ifndef LOCKSTEP_SERVER_CHIEF_RUN_RUN_DIRECTORY_H_
#define LOCKSTEP_SERVER_CHIEF_RUN_RUN_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// What a chief keeps in its logdir in addition to checkpoints and events: a lock that one chief holds, the generation
// of its present life ("generation"), and the configuration, model and data digest of the run ("lockstep.textproto"). A
// lock may be lost, to an administrator or to a network file system, so a long write checks CheckOwned first.
// Not thread-safe.
class RunDirectory {
 public:
  // Creates the directory, takes the lock and enters a new generation.
  // Errors: FailedPrecondition when another chief holds the lock, which the message names, with the exit code
  // kExitRetryable; DataLoss for a damaged generation file; those of the
  // file system.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(FileSystem* fs, std::string path);

  // Whether a chief holds the lock at this moment; one that opens the directory meanwhile is not disturbed. False for a
  // directory that is not there, or cannot be read: Open says why.
  static bool IsHeld(FileSystem* fs, const std::string& path);

  const std::string& path() const { return path_; }
  // One more than in the chief's life before.
  int64_t generation() const { return generation_; }

  // FailedPrecondition when another chief has taken the directory over, or the directory was taken away: the generation
  // in it is not this chief's any more, or the lock is another file. Looks at files; from any thread.
  absl::Status CheckOwned() const;

  // ReadRunRecord: nullopt in a new run.
  absl::StatusOr<absl::optional<v1::RunRecord>> ReadRecord() const;
  // Returns true if there is a checkpoint, damaged or not.
  absl::StatusOr<bool> HasCheckpoint() const;
  // WriteRunRecord.
  absl::Status WriteRecord(const v1::RunRecord& record, bool* replaced = nullptr) const;

 private:
  RunDirectory(FileSystem* fs, std::string path, std::unique_ptr<FileSystem::Lock> lock);
  // nullopt when there is none yet.
  absl::StatusOr<absl::optional<int64_t>> ReadGeneration(absl::string_view name) const;
  absl::Status EnterGeneration();

  FileSystem* const fs_;
  const std::string path_;
  const std::unique_ptr<FileSystem::Lock> lock_;
  int64_t generation_ = 0;
};

// FailedPrecondition when the weights of a run with `config` are not those of the run that `record` belongs to
// (WeightsConfig): names the first part that differs.
absl::Status CheckSameRun(const config::v1::RunSpec& record, const config::v1::RunSpec& config);

// FailedPrecondition when the two differ in more than what may be changed during a run: the learning rate, settings of
// the same optimizer, multipliers, clips and the batch size.
absl::Status CheckMayChange(const config::v1::RunSpec& record, const config::v1::RunSpec& config);

// FailedPrecondition when the record's weights were computed with other bits than this program's: names both versions
// and the newest good checkpoint of the logdir, from which another run may start.
absl::Status CheckSameArithmetic(FileSystem* fs, const std::string& logdir, const v1::RunRecord& record);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_DIRECTORY_H_

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
#include "lockstep/server/chief/ownership/fenced_files.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// The files that a chief keeps in its logdir in addition to checkpoints and events: a lock that one chief holds, the
// generation of its current incarnation ("generation"), and the configuration, model and data digest of the run
// ("lockstep.textproto"). An administrator or a network file system may break a lock, so all files are fenced
// (FencedFiles), and a long write calls CheckOwned first. Not thread-safe.
class RunDirectory {
 public:
  // Creates the directory, takes the lock, enters a new generation and fences all earlier ones. Errors:
  // FailedPrecondition with the exit code kExitRetryable if another chief, which the message names, holds the lock or
  // enters a generation at the same time; DataLoss for a damaged generation file; file system errors.
  //
  // With `silent`, beats once and replaces the lock of the chief of generation `silent`, which holds the lock but has
  // stopped beating. If the disk does not accept the beat, or another chief enters a generation at the same time, the
  // silent chief keeps its lock.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Open(FileSystem* fs, std::string path,
                                                            absl::optional<int64_t> silent = absl::nullopt);

  // Returns true if a chief currently holds the lock. Does not interfere with a chief that is opening the directory.
  // Returns false if the directory does not exist or cannot be read; Open reports why.
  static bool IsHeld(FileSystem* fs, const std::string& path);

  const std::string& path() const { return path_; }
  // Returns the generation of this incarnation: the previous incarnation's plus one.
  int64_t generation() const { return files_->generation(); }
  // The file system through which this incarnation reads and changes the directory.
  FileSystem* files() const { return files_.get(); }

  // Returns FailedPrecondition if another chief has taken over the directory or the directory was removed: it has a
  // different generation or lock file, or this generation is fenced. Reads files. May be called from any thread.
  absl::Status CheckOwned() const;

  // Calls FencedFiles::Beat. If this generation is fenced, may also return errors of CheckOwned.
  absl::Status Beat() const;

  // Calls ReadRunRecord. Returns nullopt for a new run.
  absl::StatusOr<absl::optional<v1::RunRecord>> ReadRecord() const;
  // Calls HasCheckpoints for checkpoints of this base name.
  absl::StatusOr<bool> HasCheckpoint(absl::string_view base) const;
  // Returns true if the checkpoint of global step `step` is the newest, and the state file names it.
  absl::StatusOr<bool> IsNewest(int64_t step) const;
  // Calls WriteRunRecord.
  absl::Status WriteRecord(const v1::RunRecord& record, bool* replaced = nullptr) const;

 private:
  RunDirectory(FileSystem* fs, std::string path);
  // Returns the same error as Open if another chief holds the lock.
  absl::Status TakeLock();
  // Returns nullopt if there is no generation yet.
  absl::StatusOr<absl::optional<int64_t>> ReadGeneration(absl::string_view name) const;
  absl::Status EnterGeneration(absl::optional<int64_t> silent);
  // Replaces the lock of the chief of generation `silent`.
  absl::Status ReplaceLock(int64_t silent);

  FileSystem* const fs_;
  const std::string path_;
  // Present after Open.
  std::unique_ptr<FileSystem::Lock> lock_;
  // Null before EnterGeneration. Destroyed before the lock is released.
  std::unique_ptr<FencedFiles> files_;
};

// Returns FailedPrecondition if a run with `config` would compute different weights than the run with the configuration
// `record` (WeightsConfig). The message names the first field that differs.
absl::Status CheckSameRun(const config::v1::RunSpec& record, const config::v1::RunSpec& config);

// Returns FailedPrecondition if the two configurations differ in anything that cannot change during a run. The learning
// rate, settings of the same optimizer, multipliers, clips and the batch size may change.
absl::Status CheckMayChange(const config::v1::RunSpec& record, const config::v1::RunSpec& config);

// Returns FailedPrecondition if the arithmetic that computed the record's weights differs from this program's. The
// message names both versions, and the logdir's newest valid checkpoint, from which another run may start.
absl::Status CheckSameArithmetic(FileSystem* fs, const std::string& logdir, const v1::RunRecord& record);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_CHIEF_RUN_RUN_DIRECTORY_H_

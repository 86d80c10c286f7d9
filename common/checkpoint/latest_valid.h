#ifndef LOCKSTEP_COMMON_CHECKPOINT_LATEST_VALID_H_
#define LOCKSTEP_COMMON_CHECKPOINT_LATEST_VALID_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The default base name of a run's checkpoints.
constexpr char kRunBase[] = "model.ckpt";

// Returns the prefix of the checkpoint to restore from. This is the first of the following that can be read with all
// checksums valid.
//   1. the state file's model_checkpoint_path, which users edit to choose one;
//   2. checkpoints in the directory that the state file does not list and whose step is higher, highest
//      first: the process died after writing one and before listing it;
//   3. the others that the state file lists, newest first;
//   4. the others in the directory, highest step first.
// Checkpoints in the directory are named "<base>-<step>.index". The base is that of the state file's choice or, without
// a state file, the run's own (`run_base`). If a user's Saver wrote the state file's choice, both bases are accepted.
//
// A checkpoint written by a user's Saver does not belong to the run. It is reported (FailedPrecondition) and skipped,
// because it may lack the run's variables or hold others. With CheckpointsOf::kAnyone, such checkpoints are accepted.
//
// A checkpoint is damaged if its files are inconsistent or missing, or have bytes that the device cannot read. It must
// be found damaged both before and after the others are tried, so that a brief failure of a device or network loses no
// work. `report` is called with each damaged checkpoint that is skipped, and the reason. Returns nullopt only if there
// are no checkpoints. Errors: DataLoss if all checkpoints are damaged; FailedPrecondition if a Saver wrote all of them;
// InvalidArgument for a bad state file; file system errors (a missing permission, a directory or file that cannot be
// opened), in which case no older checkpoint is used.
enum class CheckpointsOf { kRun, kAnyone };
absl::StatusOr<absl::optional<std::string>> NewestValidCheckpoint(
    FileSystem* fs, const std::string& directory,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report,
    CheckpointsOf whose = CheckpointsOf::kRun);

// Like NewestValidCheckpoint, but also reads the contents. `read` must read and verify all of them, as
// BundleReader::VerifyInto does, so that nothing is read twice. DataLoss from `read` counts as damage; any other error
// ends the search. The last call of `read` succeeds and is for the returned checkpoint, so data left by a failed call
// is never used.
absl::StatusOr<absl::optional<std::string>> ReadNewestCheckpoint(
    FileSystem* fs, const std::string& directory, absl::FunctionRef<absl::Status(const BundleReader& reader)> read,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report,
    CheckpointsOf whose = CheckpointsOf::kRun, absl::string_view run_base = kRunBase);

// Returns false only if ReadNewestCheckpoint would return nullopt. Errors: file system errors.
absl::StatusOr<bool> HasCheckpoints(FileSystem* fs, const std::string& directory,
                                    absl::string_view run_base = kRunBase);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_LATEST_VALID_H_

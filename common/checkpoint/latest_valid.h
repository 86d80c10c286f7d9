#ifndef LOCKSTEP_COMMON_CHECKPOINT_LATEST_VALID_H_
#define LOCKSTEP_COMMON_CHECKPOINT_LATEST_VALID_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "lockstep/common/checkpoint/bundle/bundle_reader.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The prefix of the checkpoint to restore from: the first of these that reads through with all checksums right.
//   1. the state file's model_checkpoint_path, which people edit to choose one;
//   2. checkpoints in the directory that the state file does not list and whose step is higher, highest
//      first: the process died between writing one and listing it;
//   3. the others that the state file lists, newest first;
//   4. the others in the directory, highest step first.
// Those in the directory are "<base>-<step>.index" with the base of the state file's choice, "model.ckpt"
// without a state file, and both when that choice was written by a user's Saver.
// A checkpoint that a user's Saver wrote is none of a run's: it is reported (FailedPrecondition) and skipped, whatever
// it holds, since it may lack variables or hold others than the run's. With CheckpointsOf::kAnyone it counts as any
// other. Damaged is one whose files contradict themselves, are missing, or have bytes that the device cannot read; and
// only when it is so twice, before and after the others were tried: a device or a network that is back by then loses no
// work. `report` is called with each damaged one that is skipped, and why. nullopt only when there are no
// checkpoints at all. Errors: DataLoss when there are some and all are damaged; FailedPrecondition when there are some
// and a Saver wrote all of them; InvalidArgument for a bad state file;
// that of the file system when it does not answer (a missing permission, a directory or a file that cannot be opened):
// nothing older is used then.
enum class CheckpointsOf { kRun, kAnyone };
absl::StatusOr<absl::optional<std::string>> NewestValidCheckpoint(
    FileSystem* fs, const std::string& directory,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report,
    CheckpointsOf whose = CheckpointsOf::kRun);

// The same where the checkpoint is wanted for its contents: `read` takes them and verifies all of them meanwhile, as
// BundleReader::VerifyInto does, so that none is read twice. Its DataLoss is damage, and any other error ends the
// search. The last call that succeeded was that of the checkpoint that is returned, and nothing was read after it: what
// a call that failed has left is never used.
absl::StatusOr<absl::optional<std::string>> ReadNewestCheckpoint(
    FileSystem* fs, const std::string& directory, absl::FunctionRef<absl::Status(const BundleReader& reader)> read,
    absl::FunctionRef<void(const std::string& prefix, const absl::Status& damage)> report,
    CheckpointsOf whose = CheckpointsOf::kRun);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_LATEST_VALID_H_

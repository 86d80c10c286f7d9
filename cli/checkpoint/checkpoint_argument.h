#ifndef LOCKSTEP_CLI_CHECKPOINT_CHECKPOINT_ARGUMENT_H_
#define LOCKSTEP_CLI_CHECKPOINT_CHECKPOINT_ARGUMENT_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// The help text for the argument DIR|CHECKPOINT.
inline constexpr char kCheckpointArgumentHelp[] =
    "a logdir, of which the newest valid checkpoint is taken; or a checkpoint, such as runs/mlp/model.ckpt-1000";

// Returns the checkpoint that `path` names: a directory's newest valid one, a prefix, one of a checkpoint's files, or a
// file of weights. In a directory, accepts checkpoints written by any program, and names damaged ones on `err`. Errors:
// InvalidArgument if `path` does not exist; NotFound for a directory without a checkpoint.
absl::StatusOr<std::string> FindCheckpoint(FileSystem* fs, const std::string& path, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CHECKPOINT_CHECKPOINT_ARGUMENT_H_

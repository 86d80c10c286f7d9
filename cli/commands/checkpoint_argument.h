#ifndef LOCKSTEP_CLI_COMMANDS_CHECKPOINT_ARGUMENT_H_
#define LOCKSTEP_CLI_COMMANDS_CHECKPOINT_ARGUMENT_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// What the help says of an argument DIR|CHECKPOINT.
inline constexpr char kCheckpointArgumentHelp[] =
    "a logdir, of which the newest valid checkpoint is taken; or a checkpoint, such as runs/mlp/model.ckpt-1000";

// The checkpoint that is meant by a directory, a prefix, or one of a checkpoint's files; or the file of weights at
// `path`. Of a directory it is the newest valid one, whoever wrote it, and those that are damaged are named on `err`.
// Errors: InvalidArgument when there is nothing of that name; NotFound for a directory without a checkpoint.
absl::StatusOr<std::string> FindCheckpoint(FileSystem* fs, const std::string& path, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_COMMANDS_CHECKPOINT_ARGUMENT_H_

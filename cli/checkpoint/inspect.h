#ifndef LOCKSTEP_CLI_CHECKPOINT_INSPECT_H_
#define LOCKSTEP_CLI_CHECKPOINT_INSPECT_H_

#include <ostream>
#include <string>
#include <vector>

#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Runs "lockstep inspect DIR|CHECKPOINT [--digest] [--json]", which lists a checkpoint's contents. `args` are the
// arguments after "inspect". DIR is a logdir; its newest valid checkpoint is used, and `err` names newer damaged ones.
// CHECKPOINT is a prefix such as DIR/model.ckpt-100, or one of its files. Verifies all checksums. Prints a table of
// name, dtype, shape and bytes; with --digest only the digest (common/checkpoint/digest.h); with --json one object
// {"checkpoint", "variables": [{"name", "dtype", "shape", "bytes"}], "bytes", "digest"}. Returns the exit code: 0 on
// success, 2 if the checkpoint is damaged, DIR has none, or an argument is wrong, 1 if a file cannot be read.
int Inspect(FileSystem* fs, const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_CHECKPOINT_INSPECT_H_

#ifndef LOCKSTEP_CLI_INPUT_FILES_H_
#define LOCKSTEP_CLI_INPUT_FILES_H_

#include "absl/status/status.h"
#include "common/io/file_system.h"
#include "proto/config.pb.h"

namespace lockstep {

// Whether the data files of all splits are there. NotFound names the split and the file that is not.
absl::Status CheckInputFiles(FileSystem* fs, const RunConfig& config);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_INPUT_FILES_H_

#ifndef LOCKSTEP_CLI_REPORT_INPUT_FILES_H_
#define LOCKSTEP_CLI_REPORT_INPUT_FILES_H_

#include "absl/status/status.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"

namespace lockstep {

// Checks that the data files of all splits exist. Otherwise returns NotFound naming the split and the missing file.
absl::Status CheckInputFiles(FileSystem* fs, const config::v1::RunSpec& config);

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_REPORT_INPUT_FILES_H_

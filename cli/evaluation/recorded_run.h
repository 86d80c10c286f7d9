#ifndef LOCKSTEP_CLI_EVALUATION_RECORDED_RUN_H_
#define LOCKSTEP_CLI_EVALUATION_RECORDED_RUN_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/command_line.h"
#include "common/io/file_system.h"
#include "proto/config.pb.h"

namespace lockstep {

// --logdir, --checkpoint and --set: which checkpoint of which run a command looks at.
struct RecordedRunFlags {
  std::string logdir;
  std::string checkpoint;
  std::vector<std::string> set;

  // This object must outlive the parsing.
  void Declare(CommandLine* command_line);

  // The logdir, or that of the checkpoint. InvalidArgument when neither is given.
  absl::StatusOr<std::string> Directory() const;

  // What the chief recorded in the directory, with `set` applied.
  // Errors: NotFound when it is not a run's logdir; InvalidArgument when it does not parse.
  absl::StatusOr<RunConfig> LoadConfig(FileSystem* fs) const;

  // The checkpoint that was named (also by one of its files), else the newest valid one of the logdir; those that are
  // damaged are named on `err`. NotFound when there is none.
  absl::StatusOr<std::string> FindCheckpoint(FileSystem* fs, std::ostream& err) const;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_EVALUATION_RECORDED_RUN_H_

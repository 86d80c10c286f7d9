#ifndef LOCKSTEP_TRAIN_EVALUATION_RECORDED_RUN_H_
#define LOCKSTEP_TRAIN_EVALUATION_RECORDED_RUN_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/config/v1/run_spec.pb.h"
#include "lockstep/worker/evaluation/model_values.h"

namespace lockstep {

// The flags --logdir, --export, --checkpoint and --set, which select the run (or an export of its model) and the
// checkpoint that a command reads.
struct RecordedRunFlags {
  std::string logdir;
  // An exported model (train/learn/model_export.h) that replaces the logdir.
  std::string exported;
  std::string checkpoint;
  std::vector<std::string> set;
  // --moving_averages, for commands that compute with the values. See DeclareMovingAverages.
  bool moving_averages = false;

  // Declares the flags. This object must outlive the parsing.
  void Declare(CommandLine* command_line);
  void DeclareMovingAverages(CommandLine* command_line);
  // Called after parsing. Clears values from environment variables that an explicit flag excludes.
  void LetFlagsExcludeVariables(const CommandLine& command_line);

  // Returns the export, the logdir or the checkpoint's directory, whichever is given first in this order. Returns
  // InvalidArgument if none is given.
  absl::StatusOr<std::string> Directory() const;

  // Returns the configuration that the chief recorded in the directory, with `set` applied. Errors: NotFound if the
  // directory is not a run's logdir; InvalidArgument if the configuration does not parse, or if an export is combined
  // with a logdir or a checkpoint; DataLoss for a damaged export.
  absl::StatusOr<config::v1::RunSpec> LoadConfig(FileSystem* fs) const;

  // Returns the prefix of the checkpoint that --checkpoint names, directly or through one of its files, or else of the
  // newest valid checkpoint in the directory. Reports damaged checkpoints on `err`. Returns NotFound if there is none.
  absl::StatusOr<std::string> FindCheckpoint(FileSystem* fs, std::ostream& err) const;
};

inline ValueSource SourceOf(const RecordedRunFlags& run) {
  return run.moving_averages ? ValueSource::kMovingAverages : ValueSource::kVariables;
}

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_RECORDED_RUN_H_

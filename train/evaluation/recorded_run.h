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

// The flags --logdir, --export, --checkpoint and --set: the run, or the export of its model, and the checkpoint that a
// command reads.
struct RecordedRunFlags {
  std::string logdir;
  // An exported model (train/learn/model_export.h), in place of the logdir.
  std::string exported;
  std::string checkpoint;
  std::vector<std::string> set;
  // --moving_averages, for commands that compute with the values: DeclareMovingAverages.
  bool moving_averages = false;

  // This object must outlive the parsing.
  void Declare(CommandLine* command_line);
  void DeclareMovingAverages(CommandLine* command_line);
  // Called after the parsing. Clears values from the environment that a flag excludes.
  void LetFlagsExcludeVariables(const CommandLine& command_line);

  // Returns the first of the export, the logdir and the directory of the checkpoint that is given. InvalidArgument if
  // none is.
  absl::StatusOr<std::string> Directory() const;

  // Returns the configuration that the chief recorded in the directory, with `set` applied. Errors: NotFound if it is
  // not a run's logdir; InvalidArgument if it does not parse, and for an export together with a logdir or a checkpoint;
  // DataLoss for a damaged export.
  absl::StatusOr<config::v1::RunSpec> LoadConfig(FileSystem* fs) const;

  // Returns the checkpoint that was named (also by one of its files), otherwise the newest valid one of the directory.
  // Reports damaged ones on `err`. NotFound if there is none.
  absl::StatusOr<std::string> FindCheckpoint(FileSystem* fs, std::ostream& err) const;
};

inline ValueSource SourceOf(const RecordedRunFlags& run) {
  return run.moving_averages ? ValueSource::kMovingAverages : ValueSource::kVariables;
}

}  // namespace lockstep

#endif  // LOCKSTEP_TRAIN_EVALUATION_RECORDED_RUN_H_

#include "lockstep/train/evaluation/recorded_run.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/checkpoint_state.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/latest_valid.h"
#include "lockstep/common/checkpoint/run_record.h"
#include "lockstep/common/config/validation/validation.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {
namespace {

// Checks the record of an export, without applying the flags. The record was valid when it was written, so an invalid
// one is reported as damage.
absl::Status CheckExport(FileSystem* fs, const std::string& directory) {
  const auto record = ReadRunRecord(fs, directory);
  absl::Status status = record.status();
  if (status.ok() && record->has_value()) status = ValidateRunSpec((*record)->config());
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::DataLossError(
      absl::StrCat("the export ", directory, " is damaged: ", kRunRecordFile, " is not whole: ", status.message()));
}

}  // namespace

void RecordedRunFlags::Declare(CommandLine* command_line) {
  command_line->AddFlag("logdir", "DIR", "the run's logdir; its newest valid checkpoint is taken", &logdir);
  command_line->AddFlag("export", "DIR",
                        "an exported model instead of --logdir and --checkpoint, such as runs/mlp/export/model/4000",
                        &exported);
  command_line->AddFlag("checkpoint", "PREFIX",
                        "this checkpoint instead, such as runs/mlp/model.ckpt-1000; its directory is the logdir when "
                        "--logdir is absent",
                        &checkpoint);
  command_line->AddFlag("set", "PATH=VALUE", "sets a field of the recorded configuration", &set);
}

void RecordedRunFlags::DeclareMovingAverages(CommandLine* command_line) {
  command_line->AddFlag("moving_averages", "",
                        "computes with the moving averages of the trained variables, where the run keeps them "
                        "(optimizer.moving_average)",
                        &moving_averages);
}

void RecordedRunFlags::LetFlagsExcludeVariables(const CommandLine& command_line) {
  const bool names_logdir = command_line.IsGiven("logdir"), names_checkpoint = command_line.IsGiven("checkpoint");
  if (command_line.IsGiven("export")) {
    if (!names_logdir) logdir.clear();
    if (!names_checkpoint) checkpoint.clear();
  } else if (names_logdir || names_checkpoint) {
    exported.clear();
  }
}

absl::StatusOr<std::string> RecordedRunFlags::Directory() const {
  if (!exported.empty()) return exported;
  if (!logdir.empty()) return logdir;
  if (checkpoint.empty())
    return absl::InvalidArgumentError("--logdir, --export or --checkpoint is missing; try --help");
  const std::string directory(Dirname(checkpoint));
  return directory.empty() ? "." : directory;
}

absl::StatusOr<config::v1::RunSpec> RecordedRunFlags::LoadConfig(FileSystem* fs) const {
  if (!exported.empty() && !(logdir.empty() && checkpoint.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("--export and ", logdir.empty() ? "--checkpoint" : "--logdir",
                                                   " exclude each other: an export has its own checkpoint"));
  }
  ASSIGN_OR_RETURN(const std::string directory, Directory());
  if (!exported.empty()) RETURN_IF_ERROR(CheckExport(fs, directory));
  ASSIGN_OR_RETURN(const absl::optional<v1::RunRecord> record, ReadRunRecord(fs, directory, set));
  if (!record) {
    return absl::NotFoundError(absl::StrCat(directory,
                                            exported.empty() ? " is not a run's logdir" : " is not an exported model",
                                            ": it has no ", kRunRecordFile));
  }
  config::v1::RunSpec config = record->config();
  // Lets other data be prepared in the same way as the training split.
  for (config::v1::InputConfig::Split& split : *config.mutable_input()->mutable_split()) {
    if (split.has_csv() && split.csv().prepared().empty())
      *split.mutable_csv()->mutable_prepared() = record->data().prepared();
    if (split.has_images() && split.images().class_name().empty() && record->data().prepared_size() == 1)
      *split.mutable_images()->mutable_class_name() = record->data().prepared(0).category();
  }
  RETURN_IF_ERROR(ValidateRunSpec(config));
  return config;
}

absl::StatusOr<std::string> RecordedRunFlags::FindCheckpoint(FileSystem* fs, std::ostream& err) const {
  if (!checkpoint.empty()) {
    const std::string prefix = CheckpointPrefixOf(checkpoint);
    ASSIGN_OR_RETURN(const bool exists, CheckpointExists(fs, prefix));
    if (!exists) return NoSuchCheckpoint(fs, checkpoint, logdir);
    return prefix;
  }
  ASSIGN_OR_RETURN(const std::string directory, Directory());
  const auto report = [&err](const std::string& prefix, const absl::Status& damage) {
    err << (absl::IsFailedPrecondition(damage) ? "skipped: " : "damaged: ") << prefix << ": " << damage.message()
        << "\n";
  };
  // An export's checkpoint is marked so that no run resumes from it.
  const CheckpointsOf whose = exported.empty() ? CheckpointsOf::kRun : CheckpointsOf::kAnyone;
  ASSIGN_OR_RETURN(const absl::optional<std::string> newest, NewestValidCheckpoint(fs, directory, report, whose));
  if (!newest.has_value()) return absl::NotFoundError(absl::StrCat(directory, " has no checkpoint yet"));
  return *newest;
}

}  // namespace lockstep

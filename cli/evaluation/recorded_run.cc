#include "cli/evaluation/recorded_run.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/bundle_files.h"
#include "common/checkpoint/checkpoint_state.h"
#include "common/checkpoint/latest_valid.h"
#include "common/config/defaults.h"
#include "common/config/override.h"
#include "common/config/text_proto.h"
#include "common/config/validation.h"

namespace lockstep {
namespace {

constexpr char kRecordFile[] = "lockstep.textproto";

// "d/model.ckpt-1.index" and "d/model.ckpt-1.data-00000-of-00001" to "d/model.ckpt-1".
std::string PrefixOfFile(const std::string& path) {
  const std::string prefix = path.substr(0, path.rfind('.'));
  return path == IndexPath(prefix) || IsDataFileOf(Basename(prefix), Basename(path)) ? prefix : path;
}

}  // namespace

void RecordedRunFlags::Declare(CommandLine* command_line) {
  command_line->AddFlag("logdir", "DIR", "the run's logdir; its newest valid checkpoint is taken", &logdir);
  command_line->AddFlag("checkpoint", "PREFIX",
                        "this checkpoint instead, such as runs/mlp/model.ckpt-1000; its directory is the logdir when "
                        "--logdir is absent",
                        &checkpoint);
  command_line->AddFlag("set", "PATH=VALUE", "sets a field of the recorded configuration", &set);
}

absl::StatusOr<std::string> RecordedRunFlags::Directory() const {
  if (!logdir.empty()) return logdir;
  if (checkpoint.empty()) return absl::InvalidArgumentError("--logdir or --checkpoint is missing; try --help");
  const std::string directory(Dirname(checkpoint));
  return directory.empty() ? "." : directory;
}

absl::StatusOr<RunConfig> RecordedRunFlags::LoadConfig(FileSystem* fs) const {
  ASSIGN_OR_RETURN(const std::string directory, Directory());
  const std::string path = JoinPath(directory, kRecordFile);
  const absl::StatusOr<std::string> text = ReadFile(fs, path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(directory, " is not a run's logdir: it has no ", kRecordFile));
  }
  RETURN_IF_ERROR(text.status());
  RunRecord record;
  RETURN_IF_ERROR(ParseTextProto(*text, path, &record));
  for (const std::string& override : set) RETURN_IF_ERROR(ApplyOverride(override, record.mutable_config()));
  ApplyDefaults(record.mutable_config());
  RETURN_IF_ERROR(ValidateRunConfig(record.config()));
  return record.config();
}

absl::StatusOr<std::string> RecordedRunFlags::FindCheckpoint(FileSystem* fs, std::ostream& err) const {
  if (!checkpoint.empty()) {
    const std::string prefix = PrefixOfFile(checkpoint);
    ASSIGN_OR_RETURN(const bool exists, CheckpointExists(fs, prefix));
    if (!exists) return absl::NotFoundError(absl::StrCat("there is no checkpoint ", prefix));
    return prefix;
  }
  ASSIGN_OR_RETURN(const std::string directory, Directory());
  ASSIGN_OR_RETURN(const absl::optional<std::string> newest,
                   NewestValidCheckpoint(fs, directory, [&err](const std::string& prefix, const absl::Status& damage) {
                     err << "damaged: " << prefix << ": " << damage.message() << "\n";
                   }));
  if (!newest.has_value()) return absl::NotFoundError(absl::StrCat(directory, " has no checkpoint yet"));
  return *newest;
}

}  // namespace lockstep

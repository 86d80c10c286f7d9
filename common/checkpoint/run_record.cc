#include "lockstep/common/checkpoint/run_record.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/override.h"
#include "lockstep/common/config/text/text_proto.h"

namespace lockstep {

absl::StatusOr<bool> IsRunDirectory(FileSystem* fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const bool has_record, fs->Exists(JoinPath(directory, kRunRecordFile)));
  if (has_record) return true;
  return fs->Exists(JoinPath(directory, kGenerationFile));
}

absl::StatusOr<absl::optional<v1::RunRecord>> ReadRunRecord(FileSystem* fs, const std::string& logdir,
                                                            absl::Span<const std::string> overrides) {
  const std::string file = JoinPath(logdir, kRunRecordFile);
  const absl::StatusOr<std::string> text = ReadFile(fs, file);
  if (absl::IsNotFound(text.status())) return absl::optional<v1::RunRecord>();
  RETURN_IF_ERROR(text.status());
  v1::RunRecord record;
  RETURN_IF_ERROR(ParseTextProto(*text, file, &record));
  for (const std::string& override : overrides) RETURN_IF_ERROR(ApplyOverride(override, record.mutable_config()));
  ApplyDefaults(record.mutable_config());
  return absl::optional<v1::RunRecord>(std::move(record));
}

absl::Status WriteRunRecord(FileSystem* fs, const std::string& logdir, const v1::RunRecord& record, bool* replaced) {
  return WriteFileAtomically(
      fs, JoinPath(logdir, kRunRecordFile),
      absl::StrCat("# The configuration, the model and the data of this run, written by the chief.\n",
                   PrintTextProto(record)),
      replaced);
}

}  // namespace lockstep

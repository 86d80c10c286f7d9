#ifndef LOCKSTEP_COMMON_CHECKPOINT_RUN_RECORD_H_
#define LOCKSTEP_COMMON_CHECKPOINT_RUN_RECORD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/v1/run_record.pb.h"

namespace lockstep {

// The files in a chief's logdir that let the chief restart without a worker, and let other programs rebuild the run's
// model.

// Names of the record file, and of the file that counts the chief's starts. The latter is created first.
inline constexpr char kRunRecordFile[] = "lockstep.textproto";
inline constexpr char kGenerationFile[] = "generation";

// Returns true if the directory is, or was, a chief's logdir.
absl::StatusOr<bool> IsRunDirectory(FileSystem* fs, const std::string& directory);

// Returns the run that is recorded in `logdir`, or nullopt if there is no record. Applies `overrides`
// (common/config/text/override.h) and then the defaults to its configuration, so that records written by older versions
// are complete too. Does not validate the configuration. Errors: InvalidArgument, which names the line that does not
// parse or the invalid override; file system errors.
absl::StatusOr<absl::optional<v1::RunRecord>> ReadRunRecord(FileSystem* fs, const std::string& logdir,
                                                            absl::Span<const std::string> overrides = {});

// Replaces the record; a reader sees the old one or the new one. See WriteFileAtomically for `replaced`.
absl::Status WriteRunRecord(FileSystem* fs, const std::string& logdir, const v1::RunRecord& record,
                            bool* replaced = nullptr);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_RUN_RECORD_H_

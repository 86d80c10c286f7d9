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

// What a chief keeps in its logdir to start again with no worker, and other programs to make the run's model.

// The name of the file, and of the one that counts the starts of chiefs, which is there before.
inline constexpr char kRunRecordFile[] = "lockstep.textproto";
inline constexpr char kGenerationFile[] = "generation";

// Whether a chief has, or had, its logdir there.
absl::StatusOr<bool> IsRunDirectory(FileSystem* fs, const std::string& directory);

// What the chief of a run recorded in `logdir`, with `overrides` (common/config/text/override.h) applied to its
// configuration and then the defaults, so that the record of an older version is complete, too. It is not validated.
// nullopt when there is no record. Errors: InvalidArgument names the line that does not parse, or the override that is
// wrong; those of the file system.
absl::StatusOr<absl::optional<v1::RunRecord>> ReadRunRecord(FileSystem* fs, const std::string& logdir,
                                                            absl::Span<const std::string> overrides = {});

// Replaces the record; a reader finds the old one or the new one. `replaced`: WriteFileAtomically.
absl::Status WriteRunRecord(FileSystem* fs, const std::string& logdir, const v1::RunRecord& record,
                            bool* replaced = nullptr);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_RUN_RECORD_H_

#include "lockstep/cli/checkpoint/checkpoint_argument.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/checkpoint/bundle/bundle_files.h"
#include "lockstep/common/checkpoint/formats/tensor_file.h"
#include "lockstep/common/checkpoint/latest_valid.h"

namespace lockstep {
absl::StatusOr<std::string> FindCheckpoint(FileSystem* fs, const std::string& path, std::ostream& err) {
  const std::string prefix = CheckpointPrefixOf(path);
  ASSIGN_OR_RETURN(const bool exists, TensorsExist(fs, prefix));
  if (exists) return prefix;
  const absl::Status listed = fs->ListDirectory(path).status();
  if (absl::IsNotFound(listed)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is neither a directory nor a checkpoint: ", NoSuchCheckpoint(fs, path, /*logdir=*/"").message()));
  }
  RETURN_IF_ERROR(listed);
  ASSIGN_OR_RETURN(const absl::optional<std::string> newest,
                   NewestValidCheckpoint(
                       fs, path,
                       [&err](const std::string& name, const absl::Status& damage) {
                         err << "damaged: " << name << ": " << damage.message() << "\n";
                       },
                       CheckpointsOf::kAnyone));
  if (!newest.has_value()) return absl::NotFoundError(absl::StrCat(path, " has no checkpoint"));
  return *newest;
}

}  // namespace lockstep

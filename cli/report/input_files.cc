#include "lockstep/cli/report/input_files.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/io/file_pattern.h"

namespace lockstep {

absl::Status CheckInputFiles(FileSystem* fs, const config::v1::RunSpec& config) {
  for (int i = 0; i < config.input().split_size(); ++i) {
    for (const std::string& file : InputFilesOf(config.input().split(i))) {
      const std::string field = absl::StrCat("input.split[", i, "]");
      if (IsFilePattern(file)) {
        const absl::Status matches = MatchFiles(fs, file).status();
        if (!matches.ok()) return InField(field, matches);
        continue;
      }
      const absl::StatusOr<bool> exists = fs->Exists(file);
      if (!exists.ok()) return InField(field, exists.status());
      if (*exists) continue;
      const char* const kind = config.input().split(i).has_images() ? "folder " : "file ";
      return absl::NotFoundError(absl::StrCat(field, ": there is no ", kind, file, WhyAbsent(fs, file)));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep

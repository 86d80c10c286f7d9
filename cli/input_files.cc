#include "cli/input_files.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/config/config_source.h"

namespace lockstep {
namespace {

std::vector<std::string> FilesOf(const InputConfig::Split& split) {
  switch (split.source_case()) {
    case InputConfig::Split::kIdx:
      return {split.idx().images(), split.idx().labels()};
    case InputConfig::Split::kCsv:
      return {split.csv().file()};
    case InputConfig::Split::kLibsvm:
      return {split.libsvm().file()};
    case InputConfig::Split::kTfrecord:
      return {split.tfrecord().file().begin(), split.tfrecord().file().end()};
    default:
      return {};
  }
}

}  // namespace

absl::Status CheckInputFiles(FileSystem* fs, const RunConfig& config) {
  for (int i = 0; i < config.input().split_size(); ++i) {
    for (const std::string& file : FilesOf(config.input().split(i))) {
      const absl::StatusOr<bool> exists = fs->Exists(file);
      const std::string field = absl::StrCat("input.split[", i, "]");
      if (!exists.ok()) return InField(field, exists.status());
      if (!*exists) return absl::NotFoundError(absl::StrCat(field, ": there is no file ", file));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep

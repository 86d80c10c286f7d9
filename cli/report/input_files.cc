#include "lockstep/cli/report/input_files.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lockstep/common/config/config_source.h"
#include "lockstep/common/io/file_pattern.h"

namespace lockstep {
namespace {

std::vector<std::string> FilesOf(const config::v1::InputConfig::Split& split) {
  switch (split.source_case()) {
    case config::v1::InputConfig::Split::kIdx:
      return {split.idx().images(), split.idx().labels()};
    case config::v1::InputConfig::Split::kCsv:
      return {split.csv().file()};
    case config::v1::InputConfig::Split::kLibsvm:
      return {split.libsvm().file()};
    case config::v1::InputConfig::Split::kTfrecord:
      return {split.tfrecord().file().begin(), split.tfrecord().file().end()};
    case config::v1::InputConfig::Split::kNpz:
      return {split.npz().file()};
    case config::v1::InputConfig::Split::kNpy:
      if (split.npy().weights().empty()) return {split.npy().features(), split.npy().labels()};
      return {split.npy().features(), split.npy().labels(), split.npy().weights()};
    case config::v1::InputConfig::Split::kRegistered:
      return {split.registered().file().begin(), split.registered().file().end()};
    default:
      return {};
  }
}

}  // namespace

absl::Status CheckInputFiles(FileSystem* fs, const config::v1::RunSpec& config) {
  for (int i = 0; i < config.input().split_size(); ++i) {
    for (const std::string& file : FilesOf(config.input().split(i))) {
      const std::string field = absl::StrCat("input.split[", i, "]");
      if (IsFilePattern(file)) {
        const absl::Status matches = MatchFiles(fs, file).status();
        if (!matches.ok()) return InField(field, matches);
        continue;
      }
      const absl::StatusOr<bool> exists = fs->Exists(file);
      if (!exists.ok()) return InField(field, exists.status());
      if (!*exists) return absl::NotFoundError(absl::StrCat(field, ": there is no file ", file));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep

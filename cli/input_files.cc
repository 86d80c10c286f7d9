#include "cli/input_files.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

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
      if (!fs->Exists(file)) {
        return absl::NotFoundError(absl::StrCat("input.split[", i, "]: there is no file ", file));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep

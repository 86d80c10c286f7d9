#ifndef LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_FILES_H_
#define LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_FILES_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace lockstep {

// File names of one checkpoint.

inline std::string IndexPath(absl::string_view prefix) { return absl::StrCat(prefix, ".index"); }

inline std::string DataPath(absl::string_view prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

// Returns true if `file_name` is a data file of the checkpoint whose prefix ends in `base_name`.
inline bool IsDataFileOf(absl::string_view base_name, absl::string_view file_name) {
  constexpr size_t kNumbersSize = 14;  // "00000-of-00001"
  return absl::ConsumePrefix(&file_name, base_name) && absl::ConsumePrefix(&file_name, ".data-") &&
         file_name.size() == kNumbersSize && file_name.substr(5, 4) == "-of-";
}

// Returns the prefix of the checkpoint that a path refers to, e.g. "d/model.ckpt-1" for that prefix itself, for
// "d/model.ckpt-1.index" and for "d/model.ckpt-1.data-00000-of-00001".
inline std::string CheckpointPrefixOf(const std::string& path) {
  const std::string prefix = path.substr(0, path.rfind('.'));
  const auto name_of = [](const std::string& whole) { return absl::string_view(whole).substr(whole.rfind('/') + 1); };
  return path == IndexPath(prefix) || IsDataFileOf(name_of(prefix), name_of(path)) ? prefix : path;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_BUNDLE_BUNDLE_FILES_H_

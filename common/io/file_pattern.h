#ifndef LOCKSTEP_COMMON_IO_FILE_PATTERN_H_
#define LOCKSTEP_COMMON_IO_FILE_PATTERN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Returns true if the last part of the path contains "*", which matches any number of characters, or "?", which matches
// one.
bool IsFilePattern(absl::string_view path);

// Returns the paths in the directory whose names match the pattern, sorted bytewise. Names that begin with a dot match
// only a pattern that does. A path without a pattern is returned unchanged, even if the file does not exist. Errors:
// NotFound if nothing matches; file system errors.
absl::StatusOr<std::vector<std::string>> MatchFiles(FileSystem* fs, const std::string& path);

// Explains, for an error message, why there is no file at `path`. Names the topmost absent directory of the path, or
// the file's directory if it is empty, because a volume may have to be mounted there. Empty if the directory has files.
std::string WhyAbsent(FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_FILE_PATTERN_H_

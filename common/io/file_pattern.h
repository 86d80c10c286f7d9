#ifndef LOCKSTEP_COMMON_IO_FILE_PATTERN_H_
#define LOCKSTEP_COMMON_IO_FILE_PATTERN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Whether the last part of the path has a "*", which stands for any number of characters, or a "?", for one.
bool IsFilePattern(absl::string_view path);

// The paths of the directory whose names match the pattern, in the order of their names' bytes. Names that begin with a
// dot match only a pattern that does. A path that is no pattern stands for itself, whether or not there is such a file.
// Errors: NotFound when nothing matches; those of the file system.
absl::StatusOr<std::vector<std::string>> MatchFiles(FileSystem* fs, const std::string& path);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_IO_FILE_PATTERN_H_

#ifndef LOCKSTEP_COMMON_SECURITY_TOKEN_FILE_H_
#define LOCKSTEP_COMMON_SECURITY_TOKEN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Tokens with which a peer without a certificate reads a run's status. A file has one token in each line; several are
// valid at the same time, so that they can be replaced. Blank lines and lines that begin with '#' do not count.

// Returns the tokens of a file. InvalidArgument if it has none, or one that is shorter than 16 characters or has
// characters other than visible ASCII, with the file and the line.
absl::StatusOr<std::vector<std::string>> ReadTokens(FileSystem* fs, const std::string& path);

// Returns true if `presented` is one of the tokens. Takes the same time wherever they differ.
bool IsAmong(absl::string_view presented, const std::vector<std::string>& tokens);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_TOKEN_FILE_H_

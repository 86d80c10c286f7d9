#ifndef LOCKSTEP_COMMON_SECURITY_TOKEN_FILE_H_
#define LOCKSTEP_COMMON_SECURITY_TOKEN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Tokens that let a peer without a certificate read a run's status. A file has one token per line. Several tokens may
// be valid at the same time, so that they can be replaced. Blank lines and lines that begin with '#' are ignored.

// Returns the tokens of a file. InvalidArgument, with the file and the line, if it has no token, a token of fewer than
// 16 characters, or a token with characters other than visible ASCII.
absl::StatusOr<std::vector<std::string>> ReadTokens(FileSystem* fs, const std::string& path);

// Returns true if `presented` is one of the tokens. The time taken does not depend on where they differ.
bool IsAmong(absl::string_view presented, const std::vector<std::string>& tokens);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_TOKEN_FILE_H_

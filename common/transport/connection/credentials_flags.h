#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_FLAGS_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/connection/credentials.h"

namespace lockstep {

// Returns a client's credentials. If `tls_dir` is empty, there is no TLS; if `token_file` is empty, there is no token.
// Checks the directory (TlsDirectory::Check). Errors: InvalidArgument, naming the file and the problem; InvalidArgument
// for a token without TLS, because the token would cross the network in plain text.
absl::StatusOr<Credentials> LoadClientCredentials(FileSystem* fs, const std::string& tls_dir,
                                                  const std::string& token_file);

// Returns the value of LOCKSTEP_TLS_DIR, or an empty string if it is not set. For libraries; programs use the same
// value if the flag --tls_dir is not given.
std::string TlsDirOfEnvironment();
// Returns true if LOCKSTEP_INSECURE is set to true, as --insecure would parse it.
bool IsInsecureByEnvironment();

// The flags --tls_dir and --token_file of programs that connect to a chief.
struct CredentialsFlags {
  std::string tls_dir;
  std::string token_file;

  // Declares --tls_dir. This object must outlive the parsing.
  void Declare(CommandLine* command_line);
  // Also declares --token_file, for programs that only read the status of a run.
  void DeclareWithToken(CommandLine* command_line);
  absl::StatusOr<Credentials> Load(FileSystem* fs) const { return LoadClientCredentials(fs, tls_dir, token_file); }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_FLAGS_H_

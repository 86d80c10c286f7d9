#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_FLAGS_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/connection/credentials.h"

namespace lockstep {

// Returns a client's credentials. `tls_dir` may be empty: no TLS. `token_file` may be empty: no token. Checks the
// directory (TlsDirectory::Check). InvalidArgument names the file and what is wrong with it, or a token without TLS,
// which would go over the network in plain text.
absl::StatusOr<Credentials> LoadClientCredentials(FileSystem* fs, const std::string& tls_dir,
                                                  const std::string& token_file);

// Returns the value of LOCKSTEP_TLS_DIR; empty if it has none. For libraries; a program's flag --tls_dir has this value
// if it is not given.
std::string TlsDirOfEnvironment();
// Returns true if LOCKSTEP_INSECURE is set to anything but "false". The same for --insecure.
bool IsInsecureByEnvironment();

// --tls_dir and --token_file of the programs that connect to a chief.
struct CredentialsFlags {
  std::string tls_dir;
  std::string token_file;

  // Declares --tls_dir. This object must outlive the parsing.
  void Declare(CommandLine* command_line);
  // Declares --token_file as well, for the programs that only look.
  void DeclareWithToken(CommandLine* command_line);
  absl::StatusOr<Credentials> Load(FileSystem* fs) const { return LoadClientCredentials(fs, tls_dir, token_file); }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CREDENTIALS_FLAGS_H_

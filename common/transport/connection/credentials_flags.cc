#include "lockstep/common/transport/connection/credentials_flags.h"

#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/security/tls_directory.h"
#include "lockstep/common/security/token_file.h"

namespace lockstep {

absl::StatusOr<Credentials> LoadClientCredentials(FileSystem* fs, const std::string& tls_dir,
                                                  const std::string& token_file) {
  const TlsDirectory directory(tls_dir);
  if (directory.empty() && !token_file.empty()) {
    return absl::InvalidArgumentError(
        "--token_file needs --tls_dir, a folder with the chief's ca.crt: without TLS anybody on the way could read the "
        "token");
  }
  if (directory.empty()) return Credentials();
  RETURN_IF_ERROR(directory.Check(fs, TlsDirectory::End::kClient, absl::Now()));
  if (token_file.empty()) return Credentials(tls_dir);
  ASSIGN_OR_RETURN(const std::vector<std::string> tokens, ReadTokens(fs, token_file));
  return Credentials(tls_dir, tokens.front());
}

std::string TlsDirOfEnvironment() {
  const char* const directory = std::getenv(CommandLine::VariableOf("tls_dir").c_str());
  return directory == nullptr ? "" : directory;
}

bool IsInsecureByEnvironment() {
  const char* const text = std::getenv(CommandLine::VariableOf("insecure").c_str());
  // Parsed like the flag. Any value that is neither true nor false counts as false.
  bool insecure = false;
  return text != nullptr && absl::SimpleAtob(text, &insecure) && insecure;
}

void CredentialsFlags::Declare(CommandLine* command_line) {
  command_line->AddFlag("tls_dir", "DIR",
                        "speak TLS with a chief on another address than a unix socket, and prove this process's "
                        "identity by the files ca.crt, tls.crt and tls.key in DIR; lockstep certs makes them",
                        &tls_dir);
}

void CredentialsFlags::DeclareWithToken(CommandLine* command_line) {
  Declare(command_line);
  command_line->AddFlag("token_file", "FILE",
                        "prove the right to see the status by the first token in FILE, when DIR has ca.crt alone",
                        &token_file);
}

}  // namespace lockstep

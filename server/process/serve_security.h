#ifndef LOCKSTEP_SERVER_PROCESS_SERVE_SECURITY_H_
#define LOCKSTEP_SERVER_PROCESS_SERVE_SECURITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"

namespace lockstep {

// Settings that determine which peers a chief serves over TCP. Over unix sockets, it serves only processes of its own
// user and of root. A value type.
struct ServeSecurity {
  // The chief's TlsDirectory. If empty, TCP connections are in plain text, and every peer that reaches the port is
  // trusted.
  std::string tls_dir;
  // Tokens for viewers over TLS (common/security/token_file.h). If empty, there are none.
  std::string token_file;
  // Allows plain text on addresses that other machines can reach.
  bool insecure = false;

  // Declares --tls_dir, --token_file and --insecure. This object must outlive the parsing.
  void Declare(CommandLine* command_line);
  // Returns these settings as flags for another process.
  std::vector<std::string> ToWords() const;
};

// Returns OK if a chief that listens on `addresses`, separated by commas, may start with this configuration: its files
// are valid at `now`, and it uses TLS, sets `insecure`, or has only unix socket and loopback addresses. Otherwise
// returns InvalidArgument, naming the file or the address, and the flags that help. May query a name server.
absl::Status CheckServeSecurity(FileSystem* fs, const ServeSecurity& security, absl::string_view addresses,
                                absl::Time now);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_PROCESS_SERVE_SECURITY_H_

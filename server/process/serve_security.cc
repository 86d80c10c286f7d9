#include "lockstep/server/process/serve_security.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/security/tls_directory.h"
#include "lockstep/common/security/token_file.h"
#include "lockstep/server/rpc/admission/listen_address.h"

namespace lockstep {

void ServeSecurity::Declare(CommandLine* command_line) {
  command_line->AddFlag(
      "tls_dir", "DIR",
      "speak TLS on all addresses but unix sockets, and take the files ca.crt, tls.crt and tls.key from DIR, which may "
      "be replaced at any time; lockstep certs makes them",
      &tls_dir);
  command_line->AddFlag("token_file", "FILE",
                        "each line is a token that lets a client without a certificate see the status, over TLS",
                        &token_file);
  command_line->AddFlag("insecure", "",
                        "listen in plain text although other machines can reach an address: whoever reaches it is "
                        "trusted with the run",
                        &insecure);
}

std::vector<std::string> ServeSecurity::ToWords() const {
  std::vector<std::string> words;
  if (!tls_dir.empty()) words.push_back(absl::StrCat("--tls_dir=", tls_dir));
  if (!token_file.empty()) words.push_back(absl::StrCat("--token_file=", token_file));
  if (insecure) words.emplace_back("--insecure");
  return words;
}

absl::Status CheckServeSecurity(FileSystem* fs, const ServeSecurity& security, absl::string_view addresses,
                                absl::Time now) {
  if (!security.token_file.empty()) RETURN_IF_ERROR(ReadTokens(fs, security.token_file).status());
  if (!security.tls_dir.empty()) {
    return TlsDirectory(security.tls_dir).Check(fs, TlsDirectory::End::kServer, now);
  }
  if (!security.token_file.empty()) {
    return absl::InvalidArgumentError("--token_file needs --tls_dir: without TLS every peer is trusted anyway");
  }
  if (security.insecure) return absl::OkStatus();
  for (const absl::string_view address : absl::StrSplit(addresses, ',', absl::SkipEmpty())) {
    if (IsLocalAddress(address)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("other machines can reach ", address,
                     ", and without TLS whoever does is trusted with the run: give --tls_dir=DIR (lockstep certs makes "
                     "the files), or --insecure on a network that only the run's own machines reach"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep

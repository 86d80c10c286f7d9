#ifndef LOCKSTEP_COMMON_SECURITY_TLS_DIRECTORY_H_
#define LOCKSTEP_COMMON_SECURITY_TLS_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/certificate.h"
#include "lockstep/common/security/peer_identity.h"

namespace lockstep {

// The files with which a process proves its identity, named as in a Kubernetes TLS Secret: ca.crt has the authorities
// that the process trusts, tls.crt its certificate, and tls.key its key. A chief may also have crl.pem, the revoked
// certificates. A value type.
class TlsDirectory {
 public:
  // An empty path means no TLS.
  explicit TlsDirectory(std::string path) : path_(std::move(path)) {}

  bool empty() const { return path_.empty(); }
  const std::string& path() const { return path_; }
  std::string authorities() const { return path_ + "/ca.crt"; }
  std::string certificate() const { return path_ + "/tls.crt"; }
  std::string key() const { return path_ + "/tls.key"; }
  std::string revocations() const { return path_ + "/crl.pem"; }

  // Returns false if there is neither a certificate nor a key, as in the directory of a client that proves its identity
  // with a token.
  absl::StatusOr<bool> HasCertificate(FileSystem* fs) const;
  // Reads ca.crt and crl.pem. InvalidArgument names the file and what is wrong with it.
  absl::StatusOr<TrustedAuthorities> ReadAuthorities(FileSystem* fs) const;
  // Reads tls.crt. Errors are as for ReadAuthorities.
  absl::StatusOr<Certificate> ReadCertificate(FileSystem* fs) const;

  enum class End { kServer, kClient };
  // Checks everything that a handshake needs: the files exist and are readable, the key fits the certificate, an
  // authority has issued it, and it is valid at `now`. A server must have a certificate whose role, if it has one, is
  // chief. InvalidArgument names the file and the problem.
  absl::Status Check(FileSystem* fs, End end, absl::Time now) const;

 private:
  std::string path_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_TLS_DIRECTORY_H_

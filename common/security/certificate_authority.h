#ifndef LOCKSTEP_COMMON_SECURITY_CERTIFICATE_AUTHORITY_H_
#define LOCKSTEP_COMMON_SECURITY_CERTIFICATE_AUTHORITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/peer_identity.h"

namespace lockstep {

// A certificate authority for one run or cluster, kept in a folder, for users without an authority of their own:
// ca.crt, which every process trusts; ca.key, which stays with its owner; and crl.pem once a certificate has been
// revoked. Keys are on the curve P-256, and only their owner can read their files. Do not call these functions
// concurrently for one folder.

// The time during which a certificate is valid.
struct ValidityPeriod {
  absl::Time begin;
  absl::Time end;
};

// Creates an authority in `directory`, which is created if it does not exist. `run` is the name of the run in the
// identities that the authority issues (IsPeerName). AlreadyExists if the directory already has an authority.
absl::Status CreateAuthority(FileSystem* fs, const std::string& directory, const std::string& run,
                             const ValidityPeriod& validity);

// The process that a kit is for.
struct KitRequest {
  PeerRole role = PeerRole::kWorker;
  // Distinguishes the processes of one role; may be empty.
  std::string name;
  // Host names and addresses of a chief, which clients other than Lockstep's check; may be empty.
  std::vector<std::string> hosts;
  ValidityPeriod validity;
};

// Creates a kit in the folder `kit`, which is for --tls_dir (TlsDirectory) and is created if it does not exist. The kit
// consists of copies of ca.crt and, if it exists, crl.pem, a new key, and the certificate for this key. Replaces an
// older kit. NotFound if `directory` has no authority.
absl::Status IssueKit(FileSystem* fs, const std::string& directory, const KitRequest& request, const std::string& kit);

// Adds a certificate (a PEM file such as a kit's tls.crt) to the authority's crl.pem. The new crl.pem must then be
// copied to the chief's folder. InvalidArgument if another authority has issued the certificate.
absl::Status RevokeCertificate(FileSystem* fs, const std::string& directory, const std::string& certificate,
                               absl::Time now);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_CERTIFICATE_AUTHORITY_H_

#ifndef LOCKSTEP_COMMON_SECURITY_CERTIFICATE_AUTHORITY_H_
#define LOCKSTEP_COMMON_SECURITY_CERTIFICATE_AUTHORITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/security/peer_identity.h"

namespace lockstep {

// A certificate authority of one run or cluster in a folder, for users without an authority: ca.crt, which every
// process trusts; ca.key, which stays with its owner; and crl.pem once a certificate has been revoked. Keys are on the
// curve P-256, and only their owner can read their files. Do not call these functions concurrently for one folder.

// The time during which a certificate is valid.
struct ValidityPeriod {
  absl::Time begin;
  absl::Time end;
};

// Makes an authority in `directory`, which is created if it is absent. `run` is the run in the identities that it
// issues (IsPeerName). AlreadyExists if the directory has an authority.
absl::Status CreateAuthority(FileSystem* fs, const std::string& directory, const std::string& run,
                             const ValidityPeriod& validity);

// The process that a kit is for.
struct KitRequest {
  PeerRole role = PeerRole::kWorker;
  // Distinguishes the processes of one role; may be empty.
  std::string name;
  // Host names and addresses of a chief, which clients other than Lockstep's compare; may be empty.
  std::vector<std::string> hosts;
  ValidityPeriod validity;
};

// Makes a kit in `kit`, a folder for --tls_dir (TlsDirectory) that is created if it is absent. The kit has copies of
// ca.crt and, if it exists, crl.pem, a new key, and its certificate. An older kit is replaced. NotFound if `directory`
// has no authority.
absl::Status IssueKit(FileSystem* fs, const std::string& directory, const KitRequest& request, const std::string& kit);

// Adds a certificate, a file in PEM such as a kit's tls.crt, to the authority's crl.pem. The chief's folder needs a
// copy of the new crl.pem. InvalidArgument if another authority has issued the certificate.
absl::Status RevokeCertificate(FileSystem* fs, const std::string& directory, const std::string& certificate,
                               absl::Time now);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_CERTIFICATE_AUTHORITY_H_

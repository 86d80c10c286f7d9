#ifndef LOCKSTEP_COMMON_SECURITY_PEER_IDENTITY_H_
#define LOCKSTEP_COMMON_SECURITY_PEER_IDENTITY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace lockstep {

// The role of a process in its dealings with a chief. A certificate names one of these roles, except the first and the
// last.
enum class PeerRole {
  kAnonymous,  // over TLS, without a certificate that names a role
  kViewer,
  kReader,
  kWorker,
  kOperator,
  kChief,
  kLocal,  // over a unix socket from the chief's own user, or over a network that is trusted as a whole
};

// Returns "worker" for kWorker.
absl::string_view PeerRoleName(PeerRole role);
// Returns the role with this name, or nullopt if there is none. "anonymous" and "local" are not accepted, because no
// certificate may claim them.
absl::optional<PeerRole> ParsePeerRole(absl::string_view name);
// Returns the names of the roles that a certificate may have.
std::vector<std::string> IssuedRoleNames();

// The identity that a certificate gives a process, in a URI among its subject alternative names:
// "spiffe://DOMAIN/lockstep/RUN/ROLE" or "spiffe://DOMAIN/lockstep/RUN/ROLE/NAME". A value type.
struct PeerIdentity {
  // The whole URI, which stays the same when a process's certificate is renewed.
  std::string uri;
  // "spiffe://DOMAIN/lockstep/RUN". Two processes belong to the same run if these are equal.
  std::string run;
  PeerRole role = PeerRole::kAnonymous;
};

// Returns the identity in a URI, or nullopt if the URI does not have this form or its role is unknown.
absl::optional<PeerIdentity> ParsePeerUri(absl::string_view uri);
// Returns the URI of a role in a run. `run` and `name` must satisfy IsPeerName; `name` may also be empty.
std::string PeerUri(absl::string_view run, PeerRole role, absl::string_view name);
// Returns true for 1 to 64 letters, digits, '.', '_' and '-', which need no escaping in a URI.
bool IsPeerName(absl::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_PEER_IDENTITY_H_

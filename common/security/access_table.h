#ifndef LOCKSTEP_COMMON_SECURITY_ACCESS_TABLE_H_
#define LOCKSTEP_COMMON_SECURITY_ACCESS_TABLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lockstep/common/security/peer_identity.h"

namespace lockstep {

// The table of calls that each role may make. The functions are pure.

// Returns true if `role` may call `method` ("/lockstep.v1.ChiefService/Step"). Methods that are not in the table are
// open only to kLocal.
bool MayCall(PeerRole role, absl::string_view method);

// Returns OK, or why `name`, a peer of this role, may not call the method: Unauthenticated for an anonymous peer,
// PermissionDenied for a known one. The message names the roles that may call it.
absl::Status CheckAccess(PeerRole role, absl::string_view name, absl::string_view method);

// Returns the table in human-readable form, with one line for each method.
std::string AccessTableText();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SECURITY_ACCESS_TABLE_H_

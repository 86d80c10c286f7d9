#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep {

// Returns `status`, the end of a call whose channel never connected, with a message for people: the name cannot be
// resolved, the connection was refused, or the port speaks something other than HTTP/2. Other errors are unchanged.
absl::Status ExplainConnectError(const std::string& target, const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_

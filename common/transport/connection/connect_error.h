#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep {

// Returns `status`, the end of a call, with a message for people. If the channel never connected, the name cannot be
// resolved, the connection was refused, or the port speaks something other than HTTP/2. If the method is unknown, a
// server of something else listens there. Other errors are unchanged.
absl::Status ExplainConnectError(const std::string& target, const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_

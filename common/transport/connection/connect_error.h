#ifndef LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_
#define LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep {

// Returns `status`, the result of a call, with a human-readable message. If the channel never connected, the message
// says whether the name cannot be resolved, the connection was refused, or the port does not speak HTTP/2. If the
// method is unknown, the message says that the server is not a chief of this release. Does not change other errors.
absl::Status ExplainConnectError(const std::string& target, const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_CONNECTION_CONNECT_ERROR_H_

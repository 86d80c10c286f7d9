#ifndef LOCKSTEP_SERVER_RPC_ADMISSION_LISTEN_ADDRESS_H_
#define LOCKSTEP_SERVER_RPC_ADMISSION_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The parts of "host:port" for a server that listens there.
struct ListenAddress {
  // The host without brackets; "0.0.0.0" if the address has none.
  std::string host;
  std::string port;
};
// Returns InvalidArgument if there is no port.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view address);

// Checks for errors that would occur at every attempt to listen on the addresses, which are separated by commas.
// Returns InvalidArgument, naming the first address that has no port or a port above 65535, whose host is unknown or on
// another machine, or whose socket's directory does not exist. A port in use is not such an error, because it may soon
// be free. May query a name server.
absl::Status CheckListenAddresses(absl::string_view addresses);

// Returns true if no other machine can reach a server at this address: a unix socket, or a host whose addresses are all
// loopback. May query a name server.
bool IsLocalAddress(absl::string_view address);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_RPC_ADMISSION_LISTEN_ADDRESS_H_

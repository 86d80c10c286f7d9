#ifndef LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_
#define LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Where the chief is, as the master string of a worker or of a command line says it.
struct MasterAddress {
  // As gRPC spells them, "host:port", "unix:/path" or "unix-abstract:name", to be tried in this order. Empty: in this
  // very process, without a socket.
  std::vector<std::string> targets;

  bool in_process() const { return targets.empty(); }
};

// Reads "" (in process), "grpc://host:port" (or "host:port"; an IPv6 host in brackets), "unix:/path",
// "unix-abstract:name", or several of these but the first separated by commas. InvalidArgument names the part that is
// wrong and gives an example.
absl::StatusOr<MasterAddress> ParseMasterAddress(absl::string_view master);

// Whether an address as gRPC spells it is a unix socket, so that it has no port.
bool IsUnixAddress(absl::string_view address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_

#ifndef LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_
#define LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Where the chief is, as the master string of a worker or of a command line says it. At most one of the two is set;
// neither: in this very process, without a socket.
struct MasterAddress {
  // As gRPC spells them, "host:port", "unix:/path" or "unix-abstract:name", to be tried in this order.
  std::vector<std::string> targets;
  // The file that has the address (common/cluster/address_file.h), to be read before every attempt to connect.
  std::string file;

  bool in_process() const { return targets.empty() && file.empty(); }
};

// The one reader of master strings:
//   ""                        in process
//   "grpc://host:port"        also "host:port"; an IPv6 host in brackets
//   "unix:/path"              a unix socket; "unix-abstract:name": one that is no file
//   "grpc://a:1,grpc://b:2"   several of these two, to be tried in this order
//   "file:/path"              a file with one of the three above, which may change
// InvalidArgument names the part that is wrong, what is wrong with it, and gives an example.
absl::StatusOr<MasterAddress> ParseMasterAddress(absl::string_view master);

// Whether an address as gRPC spells it is a unix socket, so that it has no port.
bool IsUnixAddress(absl::string_view address);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_

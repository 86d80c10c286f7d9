#ifndef LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_
#define LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The location of the chief, parsed from the master string of a worker or a command line. At most one of the two fields
// is set. If neither is set, the chief is in this process, without a socket.
struct MasterAddress {
  // Addresses in gRPC's syntax ("host:port", "unix:/path" or "unix-abstract:name"), in the order in which to try them.
  std::vector<std::string> targets;
  // The file with the address (common/cluster/address_file.h). It is read before every attempt to connect.
  std::string file;

  bool in_process() const { return targets.empty() && file.empty(); }
};

// Parses a master string:
//   ""                        in process
//   "grpc://host:port"        also "host:port"; an IPv6 host in brackets
//   "unix:/path"              a unix socket; "unix-abstract:name": one that is not a file
//   "grpc://a:1,grpc://b:2"   several of these two, to try in this order
//   "file:/path"              a file with one of the three above, which may change
// InvalidArgument names the wrong part and the problem, and gives an example.
absl::StatusOr<MasterAddress> ParseMasterAddress(absl::string_view master);

// Returns true if an address in gRPC's syntax is a unix socket, and so has no port.
bool IsUnixAddress(absl::string_view address);

// Returns a peer's address in gRPC's syntax ("ipv4:10.0.0.7:4321", "ipv6:%5Bfe80::1%5D:4321") as a human-readable
// HOST:PORT; "unix socket" for a peer that uses one.
std::string AddressOfPeer(absl::string_view peer);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_MASTER_ADDRESS_H_

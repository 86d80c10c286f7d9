#ifndef LOCKSTEP_COMMON_CLIENT_CONNECTOR_H_
#define LOCKSTEP_COMMON_CLIENT_CONNECTOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/cluster/master_address.h"

namespace lockstep {

// Connects a program to the chief that a master address names. Each main function chooses the connector that it links:
// over gRPC (common/transport/grpc_connector.h) or in process (server/local/local_connector.h).
class Connector {
 public:
  virtual ~Connector() = default;

  // Returns a client of the chief at `address`, which connects on its first call. InvalidArgument if this program
  // cannot reach such an address.
  virtual absl::StatusOr<std::unique_ptr<ChiefClient>> Connect(const MasterAddress& address) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLIENT_CONNECTOR_H_

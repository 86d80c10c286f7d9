#ifndef LOCKSTEP_COMMON_TRANSPORT_GRPC_CONNECTOR_H_
#define LOCKSTEP_COMMON_TRANSPORT_GRPC_CONNECTOR_H_

#include <memory>

#include "lockstep/common/client/connector.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/grpc_chief_client.h"

namespace lockstep {

// A connector to chiefs in other processes over gRPC. Returns InvalidArgument for an empty master. Thread-safe.
class GrpcConnector : public Connector {
 public:
  // `fs` must outlive this object and its clients.
  explicit GrpcConnector(FileSystem* fs, const GrpcClientOptions& options = {}) : fs_(fs), options_(options) {}

  absl::StatusOr<std::unique_ptr<ChiefClient>> Connect(const MasterAddress& address) override;

 private:
  FileSystem* const fs_;
  const GrpcClientOptions options_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TRANSPORT_GRPC_CONNECTOR_H_

#include "lockstep/common/transport/grpc_connector.h"

#include <string>

#include "lockstep/common/client/located_chief_client.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<ChiefClient>> GrpcConnector::Connect(const MasterAddress& address) {
  if (address.in_process()) {
    return absl::InvalidArgumentError(
        "the master is empty: that is a chief in the same process, and this one has none");
  }
  if (address.file.empty() && address.targets.size() == 1) return NewGrpcChiefClient(address.targets[0], options_);
  return std::unique_ptr<ChiefClient>(new LocatedChiefClient(
      fs_, address, [options = options_](const std::string& target) { return NewGrpcChiefClient(target, options); }));
}

}  // namespace lockstep

#include "lockstep/common/transport/grpc_connector.h"

#include <string>

#include "lockstep/common/client/located_chief_client.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<ChiefClient>> GrpcConnector::Connect(const MasterAddress& address) {
  if (address.in_process()) {
    return absl::InvalidArgumentError(
        "the master is empty: that is a chief in the same process, and this one has none");
  }
  return std::unique_ptr<ChiefClient>(new LocatedChiefClient(
      fs_, address, [options = options_](const std::string& target, const ChiefClient::OnSilence& on_silence) {
        GrpcClientOptions of_target = options;
        of_target.on_silence = on_silence;
        return NewGrpcChiefClient(target, of_target);
      }));
}

}  // namespace lockstep

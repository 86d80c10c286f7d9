#include "lockstep/server/local/local_connector.h"

#include "lockstep/server/local/local_chief_client.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<ChiefClient>> LocalConnector::Connect(const MasterAddress& address) {
  if (!address.in_process()) {
    return absl::InvalidArgumentError("the master is not empty: the chief of this process has no other address");
  }
  return NewLocalChiefClient(chief_);
}

}  // namespace lockstep

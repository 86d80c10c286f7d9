#ifndef LOCKSTEP_SERVER_LOCAL_LOCAL_CONNECTOR_H_
#define LOCKSTEP_SERVER_LOCAL_LOCAL_CONNECTOR_H_

#include <memory>

#include "lockstep/common/client/connector.h"
#include "lockstep/server/chief/chief.h"

namespace lockstep {

// A connector to the chief in this process, whose master address is ''. Returns InvalidArgument for any other address.
// Thread-safe.
class LocalConnector : public Connector {
 public:
  // `chief` must outlive this object and its clients.
  explicit LocalConnector(Chief* chief) : chief_(chief) {}

  absl::StatusOr<std::unique_ptr<ChiefClient>> Connect(const MasterAddress& address) override;

 private:
  Chief* const chief_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_LOCAL_LOCAL_CONNECTOR_H_

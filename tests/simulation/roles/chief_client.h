#ifndef LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_CLIENT_H_
#define LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_CLIENT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/connector.h"
#include "lockstep/tests/simulation/world/process.h"

namespace lockstep {
namespace simulation {

// Connects a simulated program to its chief over the simulated network. Replaces GrpcConnector: its clients have the
// same deadlines, errors and bytes.
class SimulatedConnector : public Connector {
 public:
  // `client` must outlive this object and its clients.
  explicit SimulatedConnector(Process* client) : client_(client) {}

  absl::StatusOr<std::unique_ptr<ChiefClient>> Connect(const MasterAddress& address) override;

 private:
  Process* const client_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_CLIENT_H_

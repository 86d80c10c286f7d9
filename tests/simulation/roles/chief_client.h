#ifndef LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_CLIENT_H_
#define LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/client/connector.h"
#include "lockstep/tests/simulation/world/process.h"

namespace lockstep {
namespace simulation {

// Returns a client of the chief at `address`, "host:port", over the simulated network. It has the same deadlines,
// errors and bytes as NewGrpcChiefClient over a real network. `client` must outlive it.
std::unique_ptr<ChiefClient> NewSimulatedChiefClient(Process* client, const std::string& address);

// Connects a simulated program to its chief. Replaces GrpcConnector.
class SimulatedConnector : public Connector {
 public:
  explicit SimulatedConnector(Process* client) : client_(client) {}

  absl::StatusOr<std::unique_ptr<ChiefClient>> Connect(const MasterAddress& address) override;

 private:
  Process* const client_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_CLIENT_H_

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

// The chief at `address`, "host:port", over the simulated network, as NewGrpcChiefClient reaches it over a real one:
// the same deadlines, the same errors, the same bytes. `client` must outlive it.
std::unique_ptr<ChiefClient> NewSimulatedChiefClient(Process* client, const std::string& address);

// Connects a simulated program to its chief, in place of GrpcConnector.
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

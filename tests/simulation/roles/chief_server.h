#ifndef LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_SERVER_H_
#define LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_SERVER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lockstep/server/chief/chief.h"
#include "lockstep/server/rpc/admission/session_opener.h"
#include "lockstep/server/rpc/call/unauthenticated_calls.h"
#include "lockstep/tests/simulation/world/network.h"
#include "lockstep/tests/simulation/world/process.h"

namespace lockstep {
namespace simulation {

// Callbacks that tell the judge about the frames that a chief receives and sends.
struct ReplyObserver {
  std::function<void(Process* chief, const std::shared_ptr<Call>& stream, const StepReplyFrame& reply)> on_reply;
  // Called when a frame has arrived, before the chief handles it. May be null.
  std::function<void(const std::shared_ptr<Call>& stream, const StepFrame& frame)> on_frame;
  // Called when the chief has taken a contribution frame that arrived from `worker` at time `at`. May be null.
  std::function<void(Process* chief, const Process* worker, Instant at)> on_contribution;
  // Receives the bytes of each OpenSessionRequest.
  std::function<void(const std::string& request)> on_open_session;
};

// Returns the chief's global step, or -1 before there is a model.
int64_t LastStepOf(const Chief& chief);

// A server of a chief on the simulated network, in place of ChiefServer, which uses gRPC. A few threads handle a queue
// of events, each stream has a StepPump, and SessionOpener takes the long calls. The destructor ends all calls.
class SimulatedChiefServer : public CallHandler {
 public:
  // All pointers must outlive this object. Check listens() to see whether the address was free. With `many_workers`, as
  // many calls may wait at once as in a real server. Otherwise, only a few may.
  SimulatedChiefServer(Process* process, Chief* chief, std::string address, const ReplyObserver* observer,
                       bool many_workers);
  ~SimulatedChiefServer() override;

  bool listens() const { return listens_; }

  void OnCall(std::shared_ptr<Call> call) override;

 private:
  class StepStreamCall;
  class PlainCall;

  // Adds an event to the queue; one of the threads handles it.
  void Enqueue(std::function<void()> event);
  void Work();
  void Answer(const std::shared_ptr<Call>& call);
  void End(ServerCall* call);

  Process* const process_;
  Chief* const chief_;
  const std::string address_;
  const ReplyObserver* const observer_;
  UnauthenticatedCalls unauthenticated_calls_;
  SessionOpener opener_;
  int64_t streams_ = 0;  // streams whose first frame has arrived
  bool listens_ = false;
  bool ending_ = false;
  std::deque<std::function<void()>> events_;
  // Calls that have not ended.
  std::vector<std::shared_ptr<ServerCall>> calls_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_ROLES_CHIEF_SERVER_H_

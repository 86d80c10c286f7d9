#ifndef LOCKSTEP_TESTS_SIMULATION_WORLD_NETWORK_H_
#define LOCKSTEP_TESTS_SIMULATION_WORLD_NETWORK_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "lockstep/tests/simulation/world/life_scheduler.h"

namespace lockstep {
namespace simulation {

class Call;
class Network;
class Process;
class World;
struct Host;

// What a server does with what arrives. Called between turns: must not block.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void OnCall(std::shared_ptr<Call> call) = 0;
};

// What one end of a call is told. Called between turns, or by the server's own threads: must not block.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  // Call::requests has one more.
  virtual void OnRequest() = 0;
  // The client has read what was sent, or takes no more of it: Call::unread_replies is smaller.
  virtual void OnRead() = 0;
  // The client has ended its side, cancelled, or is gone: nothing more comes, and nothing that is sent arrives.
  virtual void OnBroken() = 0;
};

// A connection of TCP with a session of HTTP/2 over it: ordered both ways, with calls side by side. Either end may
// find it broken at a time of its own, or only after its pings were not answered.
struct Connection {
  enum Side { kClient = 0, kServer = 1 };
  Process* ends[2] = {nullptr, nullptr};
  bool open[2] = {true, true};
  // Everything that is sent vanishes, and nobody is told.
  bool black_hole = false;
  std::array<Instant, 2> last_arrival = {0, 0};
  // What waits, by who sends it, for the network to come back.
  std::array<std::deque<std::function<void()>>, 2> stalled;
  std::vector<std::shared_ptr<Call>> calls;
};

// One call of gRPC's, both ends of it.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Network* network, std::shared_ptr<Connection> connection, std::string method)
      : network_(network), connection_(std::move(connection)), method_(std::move(method)) {}

  const std::string& method() const { return method_; }
  const std::shared_ptr<Connection>& connection() const { return connection_; }

  // The client's end. A task that waits for anything new waits for this call's address.
  void SendRequest(std::string bytes);
  std::deque<std::string> replies;
  // Else the client has no room for a reply: none leaves the server.
  bool takes_replies = true;
  // The call is over, and how.
  absl::optional<absl::Status> status;
  std::string TakeReply();
  // Nothing more is sent, and nothing that arrives is read.
  void EndRequests();
  void Cancel(absl::Status why);

  // The server's end.
  void SendReply(std::string bytes);
  void Finish(absl::Status status);
  std::deque<std::string> requests;
  int64_t unread_replies = 0;
  bool broken = false;
  std::shared_ptr<ServerCall> server;

  // That end of the connection is gone.
  void BreakClient(const absl::Status& why);
  void BreakServer();

 private:
  friend class Network;
  void Forget();

  Network* const network_;
  const std::shared_ptr<Connection> connection_;
  const std::string method_;
};

// What is between the processes. Not thread-safe.
class Network {
 public:
  explicit Network(World* world) : world_(world) {}

  // A server takes calls at an address; false when another has it.
  bool Listen(const std::string& address, Process* server, CallHandler* handler);
  void StopListening(const std::string& address, const Process* server);
  // The address that nobody listens on with that host and any port.
  std::string AnyPort(const std::string& host);

  // In a task of `client`: a connection to who listens there. Unavailable: refused, or, with `patient`, none by
  // `deadline`. Cancelled when `cancelled` says so.
  absl::StatusOr<std::shared_ptr<Connection>> Connect(Process* client, const std::string& address, bool patient,
                                                      Instant deadline, const bool* cancelled);
  std::shared_ptr<Call> StartCall(const std::shared_ptr<Connection>& connection, const std::string& method);

  // Messages take between these two from now on.
  void set_latency(absl::Duration least, absl::Duration most);
  bool slow() const;
  // Nothing passes between a host and all others; what is sent waits.
  void Partition(const Host* host);
  void Heal(const Host* host);
  bool partitioned(const Host* host) const { return partitioned_.count(host) > 0; }
  // A reset, which either end learns at a time of its own.
  void Break(const std::shared_ptr<Connection>& connection);
  // Half open: nobody is told.
  void Blind(const std::shared_ptr<Connection>& connection);
  // That are open at some end.
  std::vector<std::shared_ptr<Connection>> connections() const;
  // Messages between the two pass, and both read them.
  bool passes(const Connection& connection) const;

  // The system closes its connections, or, `silently`, nobody does.
  void OnProcessEnd(Process* process, bool silently);

  // Delivers to the other end, in order.
  void Send(const std::shared_ptr<Connection>& connection, Connection::Side from, std::function<void()> deliver);
  World* world() const { return world_; }

 private:
  struct Server {
    Process* process = nullptr;
    CallHandler* handler = nullptr;
  };

  bool cut(const Connection& connection) const;
  void Deliver(const std::shared_ptr<Connection>& connection, Connection::Side from,
               const std::function<void()>& deliver);
  void CloseEnd(const std::shared_ptr<Connection>& connection, Connection::Side side, const absl::Status& why);
  void CloseEndSoon(const std::shared_ptr<Connection>& connection, Connection::Side side, absl::Duration delay,
                    const absl::Status& why);
  // Closes one end; the other learns it when it can.
  void CloseAndTell(const std::shared_ptr<Connection>& connection, Connection::Side side, const absl::Status& why);
  // Keepalive, as common/transport/connection/keepalive.cc sets it.
  void Ping(const std::shared_ptr<Connection>& connection, Connection::Side side);
  absl::Duration Latency();

  World* const world_;
  std::map<std::string, Server> servers_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::set<const Host*> partitioned_;
  absl::Duration least_ = absl::Microseconds(50);
  absl::Duration most_ = absl::Microseconds(500);
};

}  // namespace simulation
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_SIMULATION_WORLD_NETWORK_H_

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

// Handles the calls that arrive at a server. Called between turns, so it must not block.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void OnCall(std::shared_ptr<Call> call) = 0;
};

// Receives the events of a call at the server's end. Called between turns, or by the server's own threads, so it must
// not block.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  // Called after an element has been added to Call::requests.
  virtual void OnRequest() = 0;
  // Called after Call::unread_replies has decreased because the client has read a reply.
  virtual void OnRead() = 0;
  // Called when the client has ended its side, cancelled the call, or exited. No more requests arrive, and replies are
  // lost.
  virtual void OnBroken() = 0;
};

// A TCP connection with an HTTP/2 session over it. It is ordered in both directions and carries concurrent calls. If it
// breaks, the two ends may notice this at different times, or only when a ping is not answered.
struct Connection {
  enum Side { kClient = 0, kServer = 1 };
  Process* ends[2] = {nullptr, nullptr};
  bool open[2] = {true, true};
  // If true, all messages vanish, and neither end is notified.
  bool black_hole = false;
  std::array<Instant, 2> last_arrival = {0, 0};
  // Messages waiting for the end of a partition, by sending side.
  std::array<std::deque<std::function<void()>>, 2> stalled;
  std::vector<std::shared_ptr<Call>> calls;
};

// Both ends of one gRPC call.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Network* network, std::shared_ptr<Connection> connection, std::string method)
      : network_(network), connection_(std::move(connection)), method_(std::move(method)) {}

  const std::string& method() const { return method_; }
  const std::shared_ptr<Connection>& connection() const { return connection_; }

  // The client's end. A task that waits for news of the call uses the call's address as the key for
  // LifeScheduler::WaitFor.
  void SendRequest(std::string bytes);
  std::deque<std::string> replies;
  // If false, the client has no room for further replies, and the server cannot send any.
  bool takes_replies = true;
  // The call's final status, once it is over.
  absl::optional<absl::Status> status;
  std::string TakeReply();
  // Stops sending requests and reading replies.
  void EndRequests();
  void Cancel(absl::Status why);

  // The server's end.
  void SendReply(std::string bytes);
  void Finish(absl::Status status);
  std::deque<std::string> requests;
  int64_t unread_replies = 0;
  bool broken = false;
  // The stream's number, counted from 1 in the order in which the server's streams received their first frames; 0
  // before the first frame.
  int64_t place = 0;
  std::shared_ptr<ServerCall> server;

  // Called when the client's or the server's end of the connection is gone.
  void BreakClient(const absl::Status& why);
  void BreakServer();

 private:
  friend class Network;
  void Forget();

  Network* const network_;
  const std::shared_ptr<Connection> connection_;
  const std::string method_;
};

// The simulated network that connects the processes. Not thread-safe.
class Network {
 public:
  explicit Network(World* world) : world_(world) {}

  // Lets a server accept calls at an address. Returns false if another server has the address.
  bool Listen(const std::string& address, Process* server, CallHandler* handler);
  void StopListening(const std::string& address, const Process* server);
  // Returns an address of the host with a free port.
  std::string AnyPort(const std::string& host);

  // Connects a task of `client` to the server at `address`. Returns Unavailable if the server's host refuses the
  // connection or does not answer. If `patient`, waits for an answer, and returns DeadlineExceeded after `deadline`.
  // Returns Cancelled once `*cancelled` is true.
  absl::StatusOr<std::shared_ptr<Connection>> Connect(Process* client, const std::string& address, bool patient,
                                                      Instant deadline, const bool* cancelled);
  std::shared_ptr<Call> StartCall(const std::shared_ptr<Connection>& connection, const std::string& method);

  // Sets the minimum and maximum latency of messages from now on.
  void set_latency(absl::Duration least, absl::Duration most);
  bool slow() const;
  // Cuts a host off from all others. Messages between them wait.
  void Partition(const Host* host);
  void Heal(const Host* host);
  bool partitioned(const Host* host) const { return partitioned_.count(host) > 0; }
  // Resets the connection. The two ends may notice it at different times.
  void Break(const std::shared_ptr<Connection>& connection);
  // Leaves the connection half open: neither end is notified.
  void Blind(const std::shared_ptr<Connection>& connection);
  // Returns the connections that are open at either end.
  std::vector<std::shared_ptr<Connection>> connections() const;
  // Returns true if messages pass between the two ends, and both ends read them.
  bool passes(const Connection& connection) const;

  // Closes the process's connections. If `silently`, the other ends are not notified.
  void OnProcessEnd(Process* process, bool silently);

  // Delivers a message to the other end, in order.
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
  // Closes one end. The other end learns of this as soon as messages can reach it.
  void CloseAndTell(const std::shared_ptr<Connection>& connection, Connection::Side side, const absl::Status& why);
  // Simulates keepalive as configured in common/transport/connection/keepalive.cc.
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

#include "lockstep/tests/simulation/world/network.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lockstep/tests/simulation/world/world.h"

namespace lockstep {
namespace simulation {
namespace {

constexpr absl::Duration kPing = absl::Seconds(5);
constexpr absl::Duration kAnswer = absl::Seconds(5);
constexpr absl::Duration kUsualMost = absl::Microseconds(500);

Connection::Side Other(Connection::Side side) {
  return side == Connection::kClient ? Connection::kServer : Connection::kClient;
}

}  // namespace

void Call::SendRequest(std::string bytes) {
  network_->Send(connection_, Connection::kClient, [call = shared_from_this(), bytes = std::move(bytes)]() mutable {
    if (call->broken || call->server == nullptr) return;
    call->requests.push_back(std::move(bytes));
    call->server->OnRequest();
  });
}

void Call::EndRequests() {
  network_->Send(connection_, Connection::kClient, [call = shared_from_this()] { call->BreakServer(); });
}

std::string Call::TakeReply() {
  std::string bytes = std::move(replies.front());
  replies.pop_front();
  network_->Send(connection_, Connection::kClient, [call = shared_from_this()] {
    --call->unread_replies;
    if (!call->broken && call->server != nullptr) call->server->OnRead();
  });
  return bytes;
}

void Call::Cancel(absl::Status why) {
  if (status) return;
  EndRequests();
  BreakClient(why);
}

void Call::SendReply(std::string bytes) {
  ++unread_replies;
  network_->Send(connection_, Connection::kServer, [call = shared_from_this(), bytes = std::move(bytes)]() mutable {
    if (call->status) return;
    call->replies.push_back(std::move(bytes));
    call->network_->world()->scheduler()->Wake(call.get());
  });
}

void Call::Finish(absl::Status result) {
  network_->Send(connection_, Connection::kServer, [call = shared_from_this(), result = std::move(result)] {
    call->BreakClient(result);
    call->Forget();
  });
}

void Call::BreakClient(const absl::Status& why) {
  if (status) return;
  status = why;
  network_->world()->scheduler()->Wake(this);
}

void Call::BreakServer() {
  if (broken) return;
  broken = true;
  const std::shared_ptr<ServerCall> kept = server;
  if (kept != nullptr) kept->OnBroken();
}

void Call::Forget() {
  auto& calls = connection_->calls;
  calls.erase(std::remove_if(calls.begin(), calls.end(), [this](const auto& c) { return c.get() == this; }),
              calls.end());
}

bool Network::Listen(const std::string& address, Process* server, CallHandler* handler) {
  return servers_.emplace(address, Server{server, handler}).second;
}

void Network::StopListening(const std::string& address, const Process* server) {
  const auto it = servers_.find(address);
  if (it != servers_.end() && it->second.process == server) servers_.erase(it);
}

std::string Network::AnyPort(const std::string& host) {
  for (int port = 10000;; ++port) {
    std::string address = absl::StrCat(host, ":", port);
    if (servers_.count(address) == 0) return address;
  }
}

void Network::set_latency(absl::Duration least, absl::Duration most) {
  least_ = least;
  most_ = most;
}

bool Network::slow() const { return most_ > kUsualMost; }

absl::Duration Network::Latency() { return world_->random()->Between(least_, most_); }

bool Network::cut(const Connection& connection) const {
  for (const Process* const end : connection.ends) {
    if (partitioned(end->host()) && connection.ends[0]->host() != connection.ends[1]->host()) return true;
  }
  return false;
}

bool Network::passes(const Connection& connection) const {
  // Messages that were sent while the network was slow still delay later ones.
  const Instant late = world_->now() + absl::ToInt64Nanoseconds(4 * kUsualMost);
  if (std::max(connection.last_arrival[0], connection.last_arrival[1]) > late) return false;
  return connection.open[0] && connection.open[1] && !connection.black_hole && !cut(connection) &&
         !connection.ends[0]->frozen() && !connection.ends[1]->frozen();
}

absl::StatusOr<std::shared_ptr<Connection>> Network::Connect(Process* client, const std::string& address, bool patient,
                                                             Instant deadline, const bool* cancelled) {
  while (true) {
    world_->Sleep(Latency() * 2);
    if (client->ghost() || *cancelled) return absl::CancelledError("the client was stopped");
    const auto it = servers_.find(address);
    const bool reached = it != servers_.end() && it->second.process->alive() && !it->second.process->frozen();
    const bool answers = it == servers_.end() || reached;
    Connection probe;
    probe.ends[0] = client;
    probe.ends[1] = it == servers_.end() ? client : it->second.process;
    if (reached && !cut(probe)) {
      auto connection = std::make_shared<Connection>(probe);
      connections_.push_back(connection);
      for (const Connection::Side side : {Connection::kClient, Connection::kServer}) Ping(connection, side);
      return connection;
    }
    if (answers && !cut(probe)) return absl::UnavailableError("Connection refused");
    if (!patient) return absl::UnavailableError("failed to connect");
    if (world_->now() >= deadline) return absl::DeadlineExceededError("Deadline Exceeded");
    world_->Sleep(
        std::min(absl::Milliseconds(world_->random()->Between(5, 100)), absl::Nanoseconds(deadline - world_->now())));
  }
}

std::shared_ptr<Call> Network::StartCall(const std::shared_ptr<Connection>& connection, const std::string& method) {
  auto call = std::make_shared<Call>(this, connection, method);
  if (!connection->open[Connection::kClient]) {
    call->status = absl::UnavailableError("Socket closed");
    return call;
  }
  connection->calls.push_back(call);
  Send(connection, Connection::kClient, [this, call] {
    for (const auto& [address, server] : servers_) {
      if (server.process == call->connection()->ends[Connection::kServer] && server.handler != nullptr) {
        return server.handler->OnCall(call);
      }
    }
    call->Finish(absl::UnavailableError("the server is shutting down"));
  });
  return call;
}

void Network::Send(const std::shared_ptr<Connection>& connection, Connection::Side from,
                   std::function<void()> deliver) {
  if (!connection->open[from] || connection->ends[from]->ghost()) return;
  Instant* const last = &connection->last_arrival[from];
  *last = std::max(*last, world_->now() + absl::ToInt64Nanoseconds(Latency())) + 1;
  world_->scheduler()->At(*last, [this, connection, from, deliver = std::move(deliver)] {
    if (connection->black_hole) return;
    auto& stalled = connection->stalled[from];
    if (cut(*connection) || !stalled.empty()) {
      stalled.push_back(deliver);
    } else {
      Deliver(connection, from, deliver);
    }
  });
}

void Network::Deliver(const std::shared_ptr<Connection>& connection, Connection::Side from,
                      const std::function<void()>& deliver) {
  if (connection->open[Other(from)]) deliver();
}

void Network::Partition(const Host* host) {
  world_->transcript()->Add(world_->now(), host->name, "is cut off the network");
  partitioned_.insert(host);
}

void Network::Heal(const Host* host) {
  if (partitioned_.erase(host) == 0) return;
  world_->transcript()->Add(world_->now(), host->name, "is back in the network");
  for (const auto& connection : connections()) {
    if (cut(*connection)) continue;
    for (const Connection::Side from : {Connection::kClient, Connection::kServer}) {
      for (const auto& deliver : std::exchange(connection->stalled[from], {})) {
        world_->scheduler()->Soon([this, connection, from, deliver] { Deliver(connection, from, deliver); });
      }
    }
  }
}

std::vector<std::shared_ptr<Connection>> Network::connections() const { return connections_; }

void Network::CloseEnd(const std::shared_ptr<Connection>& connection, Connection::Side side, const absl::Status& why) {
  if (!connection->open[side]) return;
  connection->open[side] = false;
  world_->transcript()->Add(world_->now(), connection->ends[side]->name(), "its connection with ",
                            connection->ends[Other(side)]->name(), " ends: ", why.message());
  for (const auto& call : std::vector<std::shared_ptr<Call>>(connection->calls)) {
    if (side == Connection::kClient) {
      call->BreakClient(why);
    } else {
      call->BreakServer();
    }
  }
  if (connection->open[Other(side)]) return;
  connection->calls.clear();
  for (auto& stalled : connection->stalled) stalled.clear();
  connections_.erase(std::remove(connections_.begin(), connections_.end(), connection), connections_.end());
}

void Network::CloseEndSoon(const std::shared_ptr<Connection>& connection, Connection::Side side, absl::Duration delay,
                           const absl::Status& why) {
  world_->scheduler()->At(world_->now() + absl::ToInt64Nanoseconds(delay),
                          [this, connection, side, why] { CloseEnd(connection, side, why); });
}

void Network::Break(const std::shared_ptr<Connection>& connection) {
  world_->transcript()->Add(world_->now(), connection->ends[0]->name(), "its connection with ",
                            connection->ends[1]->name(), " is reset");
  for (const Connection::Side side : {Connection::kClient, Connection::kServer}) {
    const bool slow = world_->random()->Chance(0.3);
    CloseEndSoon(connection, side, Latency() * (slow ? 100 : 1), absl::UnavailableError("Connection reset by peer"));
  }
}

void Network::Blind(const std::shared_ptr<Connection>& connection) {
  world_->transcript()->Add(world_->now(), connection->ends[0]->name(), "its connection with ",
                            connection->ends[1]->name(), " is dead, and neither end is notified");
  connection->black_hole = true;
}

void Network::OnProcessEnd(Process* process, bool silently) {
  for (auto it = servers_.begin(); it != servers_.end();) {
    it = it->second.process == process ? servers_.erase(it) : std::next(it);
  }
  for (const auto& connection : connections()) {
    for (const Connection::Side side : {Connection::kClient, Connection::kServer}) {
      if (connection->ends[side] != process) continue;
      // The process's own end is always closed immediately, because a task may be waiting for calls on the connection.
      if (silently) connection->black_hole = true;
      CloseAndTell(connection, side, absl::UnavailableError("the process has ended"));
    }
  }
}

void Network::CloseAndTell(const std::shared_ptr<Connection>& connection, Connection::Side side,
                           const absl::Status& why) {
  CloseEnd(connection, side, why);
  if (connection->black_hole) return;
  const auto close = [this, connection, side] {
    CloseEnd(connection, Other(side), absl::UnavailableError("Socket closed"));
  };
  // The close arrives after all messages sent before it.
  const Instant arrival =
      std::max(connection->last_arrival[side], world_->now() + absl::ToInt64Nanoseconds(Latency())) + 1;
  world_->scheduler()->At(arrival, [this, connection, side, close] {
    if (cut(*connection)) {
      connection->stalled[side].push_back(close);
    } else {
      close();
    }
  });
}

void Network::Ping(const std::shared_ptr<Connection>& connection, Connection::Side side) {
  const auto in = [this](absl::Duration delay) { return world_->now() + absl::ToInt64Nanoseconds(delay); };
  world_->scheduler()->At(in(kPing), [this, connection, side, in] {
    if (!connection->open[side]) return;
    const auto answered = [this, connection, side] {
      return !connection->black_hole && !cut(*connection) && connection->open[Other(side)] &&
             !connection->ends[Other(side)]->frozen();
    };
    const bool frozen = connection->ends[side]->frozen();
    if (frozen || answered()) return Ping(connection, side);
    world_->scheduler()->At(in(kAnswer), [this, connection, side, answered] {
      if (!connection->open[side]) return;
      if (connection->ends[side]->frozen() || answered()) return Ping(connection, side);
      CloseAndTell(connection, side, absl::UnavailableError("keepalive watchdog timeout"));
    });
  });
}

}  // namespace simulation
}  // namespace lockstep

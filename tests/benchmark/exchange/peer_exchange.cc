#include "lockstep/tests/benchmark/exchange/peer_exchange.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/tests/benchmark/exchange/child.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(90);
constexpr absl::Duration kStepsLimit = absl::Seconds(60);

// Returns a comma-separated list of loopback ports that were free a moment ago.
std::string FreePorts(int count) {
  std::vector<int> sockets;
  std::vector<std::string> ports;
  for (int i = 0; i < count; ++i) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
    if (bind(sockets.back(), reinterpret_cast<sockaddr*>(&address), size) != 0) continue;
    getsockname(sockets.back(), reinterpret_cast<sockaddr*>(&address), &size);
    ports.push_back(absl::StrCat(ntohs(address.sin_port)));
  }
  for (const int fd : sockets) close(fd);
  return absl::StrJoin(ports, ",");
}

// The server side of a peer. Holds the ports, which serve as the address, and the process of the parameter server, if
// any.
class PeerServer : public ExchangeServer {
 public:
  explicit PeerServer(std::string ports) : ports_(std::move(ports)) {}
  std::string address() const override { return ports_; }

  absl::Status Start(const std::vector<std::string>& command, const std::string& directory) {
    ASSIGN_OR_RETURN(process_, Child::Start(command, absl::StrCat(directory, "/peers.log")));
    return process_->ReadLine(kStartLimit).status();
  }

 private:
  const std::string ports_;
  std::unique_ptr<Child> process_;
};

class PeerWorker : public ExchangeWorker {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Start(const std::vector<std::string>& command,
                                                               const std::string& directory) {
    auto worker = std::make_unique<PeerWorker>();
    ASSIGN_OR_RETURN(worker->process_, Child::Start(command, absl::StrCat(directory, "/peers.log")));
    RETURN_IF_ERROR(worker->process_->ReadLine(kStartLimit).status());
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override {
    RETURN_IF_ERROR(process_->Write(absl::StrCat(n)));
    return process_->ReadLine(kStepsLimit).status();
  }

 private:
  std::unique_ptr<Child> process_;
};

std::vector<std::string> Command(const Peers& peers, const std::string& script, const std::vector<std::string>& words) {
  std::vector<std::string> command = {peers.python, absl::StrCat(peers.scripts, "/", script)};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> Command(const Peers& peers, const std::string& script, std::vector<std::string> words,
                                 const TrainingSpec& training) {
  words.push_back(absl::StrCat(training.batch));
  for (const int64_t units : training.hidden) words.push_back(absl::StrCat(units));
  return Command(peers, script, words);
}

// Runs a single worker.
Exchange Alone(const std::vector<std::string>& command) {
  return {ServeNothing, [command](const ExchangeSpec& spec, const std::string&, int) {
            return PeerWorker::Start(command, spec.directory);
          }};
}

}  // namespace

Exchange DdpExchange(const Peers& peers, const TrainingSpec& training) {
  return {[](const ExchangeSpec&) -> absl::StatusOr<std::unique_ptr<ExchangeServer>> {
            return std::unique_ptr<ExchangeServer>(std::make_unique<PeerServer>(FreePorts(1)));
          },
          [peers, training](const ExchangeSpec& spec, const std::string& port, int index) {
            return PeerWorker::Start(
                Command(peers, "ddp.py", {absl::StrCat(index), absl::StrCat(spec.workers), port}, training),
                spec.directory);
          }};
}

Exchange SyncReplicasExchange(const Peers& peers, const TrainingSpec& training) {
  return {[peers, training](const ExchangeSpec& spec) -> absl::StatusOr<std::unique_ptr<ExchangeServer>> {
            auto server = std::make_unique<PeerServer>(FreePorts(1 + spec.workers));
            RETURN_IF_ERROR(server->Start(Command(peers, "sync_replicas.py", {"ps", "0", server->address()}, training),
                                          spec.directory));
            return std::unique_ptr<ExchangeServer>(std::move(server));
          },
          [peers, training](const ExchangeSpec& spec, const std::string& ports, int index) {
            return PeerWorker::Start(
                Command(peers, "sync_replicas.py", {"worker", absl::StrCat(index), ports}, training), spec.directory);
          }};
}

Exchange TorchModelExchange(const Peers& peers, const std::string& name, int64_t batch, TorchLayers layers) {
  const char* const words[] = {"nchw", "nhwc", "portable"};
  return Alone(Command(peers, "models.py", {name, absl::StrCat(batch), words[static_cast<int>(layers)]}));
}

Exchange OneDnnExchange(const Peers& peers, int64_t batch) {
  return Alone(Command(peers, "sgemm.py", {absl::StrCat(batch)}));
}

}  // namespace benchmark
}  // namespace lockstep

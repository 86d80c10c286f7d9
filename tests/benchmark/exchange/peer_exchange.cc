#include "lockstep/tests/benchmark/exchange/peer_exchange.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/config/defaults.h"
#include "lockstep/common/config/text/text_proto.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/tests/benchmark/exchange/child.h"
#include "lockstep/tests/benchmark/exchange/lockstep_session.h"

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
  // `in_run` is true if the process is a worker of Lockstep's, which may have to help others.
  explicit PeerWorker(bool in_run) : in_run_(in_run) {}

  static absl::StatusOr<std::unique_ptr<ExchangeWorker>> Start(const std::vector<std::string>& command,
                                                               const std::string& directory, bool in_run = false) {
    auto worker = std::make_unique<PeerWorker>(in_run);
    ASSIGN_OR_RETURN(worker->process_, Child::Start(command, absl::StrCat(directory, "/peers.log")));
    RETURN_IF_ERROR(worker->process_->ReadLine(kStartLimit).status());
    return std::unique_ptr<ExchangeWorker>(std::move(worker));
  }

  absl::Status Step(int n) override {
    RETURN_IF_ERROR(process_->Write(absl::StrCat(n)));
    return process_->ReadLine(kStepsLimit).status();
  }
  absl::Status HelpOthers() override { return in_run_ ? Step(1) : absl::OkStatus(); }

 private:
  const bool in_run_;
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

std::vector<std::string> TorchCommand(const Peers& peers, std::vector<std::string> words,
                                      const TorchTraining& training) {
  words.insert(words.end(),
               {training.model, absl::StrCat(training.batch), training.deterministic ? "deterministic" : "plain"});
  return Command(peers, "training.py", words);
}

// A chief, and workers in Python. `command` returns a worker's command, given its number, a file with the run's
// configuration, and the chief's address. `batch` is 0 if there are no examples.
Exchange InRun(int64_t batch,
               const std::function<std::vector<std::string>(const ExchangeSpec&,
                                                            const std::vector<std::string>& place)>& command) {
  const auto configure = [batch](const ExchangeSpec& spec) {
    config::v1::RunSpec config = EndlessRun(spec.workers);
    if (batch > 0) config.mutable_input()->set_batch_size(batch);
    ApplyDefaults(&config);
    return config;
  };
  return {[configure](const ExchangeSpec& spec) { return ServeLockstep(configure(spec), spec); },
          [configure, command](const ExchangeSpec& spec, const std::string& address,
                               int index) -> absl::StatusOr<std::unique_ptr<ExchangeWorker>> {
            const std::string path = absl::StrCat(spec.directory, "/run-", getpid(), ".textproto");
            RETURN_IF_ERROR(WriteFileAtomically(FileSystem::Real(), path, PrintTextProto(configure(spec))));
            return PeerWorker::Start(command(spec, {absl::StrCat(index), path, address}), spec.directory,
                                     /*in_run=*/true);
          }};
}

// Runs a single worker.
Exchange Alone(const std::vector<std::string>& command) {
  return {ServeNothing, [command](const ExchangeSpec& spec, const std::string&, int) {
            return PeerWorker::Start(command, spec.directory);
          }};
}

}  // namespace

Exchange DdpExchange(const Peers& peers, const TorchTraining& training) {
  return {[](const ExchangeSpec&) -> absl::StatusOr<std::unique_ptr<ExchangeServer>> {
            return std::unique_ptr<ExchangeServer>(std::make_unique<PeerServer>(FreePorts(1)));
          },
          [peers, training](const ExchangeSpec& spec, const std::string& port, int index) {
            return PeerWorker::Start(
                TorchCommand(peers, {"ddp", absl::StrCat(index), absl::StrCat(spec.workers), port}, training),
                spec.directory);
          }};
}

Exchange TorchRunExchange(const Peers& peers, const TorchTraining& training) {
  return InRun(training.batch, [peers, training](const ExchangeSpec&, const std::vector<std::string>& place) {
    std::vector<std::string> words = {"lockstep"};
    words.insert(words.end(), place.begin(), place.end());
    return TorchCommand(peers, std::move(words), training);
  });
}

Exchange PythonExchange(const Peers& peers, PythonSlots slots) {
  return InRun(0, [peers, slots](const ExchangeSpec& spec, const std::vector<std::string>& place) {
    std::vector<std::string> words = {slots == PythonSlots::kLoop ? "loop" : "function"};
    words.insert(words.end(), place.begin(), place.end());
    for (const v1::VariableSpec& variable : spec.model.variables()) {
      words.push_back(absl::StrJoin(variable.shape(), "x"));
    }
    return Command(peers, "slots.py", words);
  });
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

#include "lockstep/tests/benchmark/cluster_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/grpc_chief_client.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(2);

void Nap(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

absl::StatusOr<std::string> ReadPortFile(const std::string& file) {
  const absl::Time deadline = absl::Now() + kLimit;
  while (absl::Now() < deadline) {
    const auto text = ReadFile(FileSystem::Real(), file);
    int port = 0;
    if (text.ok() && absl::SimpleAtoi(*text, &port)) return absl::StrCat(port);
    Nap(std::chrono::microseconds(500));
  }
  return absl::DeadlineExceededError("the chief does not listen");
}

// Blocks until the standby that writes `log` has seen the chief.
absl::Status AwaitStandby(const std::string& log) {
  const absl::Time deadline = absl::Now() + kLimit;
  while (absl::Now() < deadline) {
    const auto text = ReadFile(FileSystem::Real(), log);
    if (text.ok() && absl::StrContains(*text, "stands by for the chief")) return absl::OkStatus();
    Nap(std::chrono::milliseconds(2));
  }
  return absl::DeadlineExceededError("the standby does not stand by");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterProcesses>> ClusterProcesses::Start(const Options& options) {
  if (options.programs.chief.empty() || options.programs.worker.empty()) {
    return absl::InvalidArgumentError("LOCKSTEP_CHIEF_BINARY and LOCKSTEP_WORKER_BINARY do not name the programs");
  }
  std::unique_ptr<ClusterProcesses> cluster(new ClusterProcesses());
  std::string text;
  google::protobuf::TextFormat::PrintToString(options.config, &text);
  const std::string config = JoinPath(options.directory, "run.textproto");
  const std::string port_file = JoinPath(options.directory, "port");
  const std::string log = JoinPath(options.directory, "cluster.log");
  RETURN_IF_ERROR(WriteFileAtomically(FileSystem::Real(), config, text));
  unlink(port_file.c_str());
  ASSIGN_OR_RETURN(cluster->chief_,
                   Child::Start({options.programs.chief, config, "--listen=127.0.0.1:0",
                                 absl::StrCat("--port_file=", port_file), absl::StrCat("--logdir=", options.logdir)},
                                log));
  ASSIGN_OR_RETURN(const std::string port, ReadPortFile(port_file));
  cluster->address_ = absl::StrCat("127.0.0.1:", port);
  std::string master = absl::StrCat("--master=grpc://", cluster->address_);
  if (options.standby) {
    cluster->standby_address_ = absl::StrCat("unix:", JoinPath(options.directory, "standby.sock"));
    absl::StrAppend(&master, ",", cluster->standby_address_);
    const std::string standby_log = JoinPath(options.directory, "standby.log");
    unlink(standby_log.c_str());
    ASSIGN_OR_RETURN(cluster->standby_, Child::Start({options.programs.chief, config, "--standby",
                                                      absl::StrCat("--listen=", cluster->standby_address_),
                                                      absl::StrCat("--logdir=", options.logdir)},
                                                     standby_log));
    RETURN_IF_ERROR(AwaitStandby(standby_log));
  }
  for (int i = 0; i < options.workers; ++i) {
    ASSIGN_OR_RETURN(auto worker, Child::Start({options.programs.worker, master}, log));
    cluster->workers_.push_back(std::move(worker));
  }
  cluster->client_ = NewGrpcChiefClient(cluster->address_);
  return cluster;
}

absl::Status ClusterProcesses::Await(const std::function<bool(const v1::RunStatus&)>& enough) {
  const absl::Time deadline = absl::Now() + kLimit;
  while (absl::Now() < deadline) {
    const auto status = client_->GetStatus();
    if (status.ok() && enough(*status)) return absl::OkStatus();
    Nap(std::chrono::milliseconds(2));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("a run of two minutes does not get where it should; its chief is ", address_));
}

absl::StatusOr<std::vector<double>> MeasureApart(const std::function<absl::StatusOr<std::vector<double>>()>& measure,
                                                 absl::Duration limit) {
  int ends[2];
  if (pipe(ends) != 0) return absl::ResourceExhaustedError("no pipe");
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError("cannot fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto numbers = measure();
    if (!numbers.ok()) std::fprintf(stderr, "benchmark process: %s\n", numbers.status().ToString().c_str());
    const size_t bytes = numbers.ok() ? numbers->size() * sizeof(double) : 0;
    const bool sent = numbers.ok() && write(ends[1], numbers->data(), bytes) == static_cast<ssize_t>(bytes);
    std::_Exit(sent ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> numbers(512);
  pollfd ready = {ends[0], POLLIN, 0};
  ssize_t got = 0;
  if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(limit))) == 1) {
    got = read(ends[0], numbers.data(), numbers.size() * sizeof(double));
  }
  close(ends[0]);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  if (got <= 0) return absl::UnavailableError("a measurement in a process of its own failed");
  numbers.resize(static_cast<size_t>(got) / sizeof(double));
  return numbers;
}

}  // namespace benchmark
}  // namespace lockstep

// Runs a thousand workers in one process, with the product's own sessions and sockets. Measures how long they take to
// join, and to return after the chief was killed, and counts their calls and errors.
//
//   many_workers --chief=BINARY [--workers=1000] [--kills=1]
//
// Also measures GetStatus while all workers are there.
//
// Exit codes: 0 if every return took at most three seconds and 1.5 OpenSession calls per worker, no call was evicted,
// and a status has at most 100 bytes per worker; 1 otherwise; 2 for wrong arguments.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/tests/benchmark/exchange/child.h"
#include "lockstep/worker/session/session.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

constexpr char kRun[] = R"(
  model { layer { name: "logits" dense { units: 2 } } loss { softmax_cross_entropy {} } }
  input { split { name: "train" synthetic { examples: 4 shape: 1 classes: 2 } } batch_size: 1 }
  optimizer { sgd {} learning_rate { initial: 0.1 } }
  training { unbounded: true replicas_to_aggregate: 1 }
  cluster { lease_seconds: 60 shared_memory: false }
)";
constexpr absl::Duration kLimit = absl::Seconds(3);
constexpr double kMostCalls = 1.5;
constexpr size_t kMostStatusBytes = 100;  // per worker
constexpr absl::Duration kGivenUp = absl::Minutes(2);

// Counters of the calls and errors of all workers. Thread-safe.
class Tally {
 public:
  void Count(const std::string& what) {
    MutexLock lock(&mutex_);
    ++counts_[what];
  }
  std::map<std::string, int> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(counts_, {});
  }
  std::atomic<int> open_sessions{0};
  std::atomic<int> open_session_calls{0};

 private:
  Mutex mutex_;
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

// A client that forwards all calls to another client, and counts the calls to OpenSession.
class CountingClient : public ChiefClient {
 public:
  CountingClient(std::unique_ptr<ChiefClient> client, Tally* tally) : client_(std::move(client)), tally_(tally) {}

  absl::StatusOr<v1::GetRunSpecReply> GetRunSpec() override { return client_->GetRunSpec(); }
  absl::StatusOr<v1::OpenSessionReply> OpenSession(const v1::OpenSessionRequest& request) override {
    ++tally_->open_session_calls;
    return client_->OpenSession(request);
  }
  absl::StatusOr<v1::SetInitialValuesReply> SetInitialValues(const v1::SetInitialValuesRequest& request) override {
    return client_->SetInitialValues(request);
  }
  absl::StatusOr<v1::GetCanaryValuesReply> GetCanaryValues(const v1::GetCanaryValuesRequest& request) override {
    return client_->GetCanaryValues(request);
  }
  absl::StatusOr<v1::HeartbeatReply> Heartbeat(const v1::HeartbeatRequest& request) override {
    return client_->Heartbeat(request);
  }
  absl::StatusOr<v1::RunStatus> GetStatus() override { return client_->GetStatus(); }
  absl::StatusOr<v1::RequestEndReply> RequestFinish(const v1::RequestEndRequest& request) override {
    return client_->RequestFinish(request);
  }
  absl::StatusOr<v1::AddSummaryReply> AddSummary(const v1::AddSummaryRequest& request) override {
    return client_->AddSummary(request);
  }
  absl::StatusOr<v1::ReadVariablesReply> ReadVariables(const v1::ReadVariablesRequest& request) override {
    return client_->ReadVariables(request);
  }
  absl::StatusOr<std::unique_ptr<StepChannel>> OpenStepChannel(const StepOptions& options,
                                                               const v1::ModelSpec& model) override {
    return client_->OpenStepChannel(options, model);
  }
  void CancelConnecting() override { client_->CancelConnecting(); }

 private:
  const std::unique_ptr<ChiefClient> client_;
  Tally* const tally_;
};

// Runs a worker that joins, receives a token but computes nothing for it, and joins again when the chief is gone. Never
// returns; the thread ends with the process.
void Work(const std::string& address, int index, Tally* tally) {
  CountingClient client(NewGrpcChiefClient(address), tally);
  WorkerSession::Options options;
  options.name = absl::StrCat("worker-", index);
  options.clock = Clock::Real();
  options.chief_address = address;
  Mutex mutex;
  CondVar changed;
  bool answered = true;
  options.on_heartbeat = [&](const absl::StatusOr<v1::HeartbeatReply>& reply) {
    MutexLock lock(&mutex);
    answered = reply.ok();
    changed.SignalAll();
    return true;
  };
  options.is_paused = [] { return true; };
  WorkerSession session(std::move(options), &client);
  absl::StatusOr<Workload> workload = absl::UnavailableError("no chief yet");
  while (true) {
    absl::Status status;
    const auto run = session.Connect();
    if (run.ok() && !workload.ok()) {
      WorkloadOptions loading;
      loading.prefetch = false;
      workload = LoadWorkload(**run, loading);
    }
    status = run.ok() ? workload.status() : run.status();
    if (status.ok()) status = session.Open(*workload);
    if (status.ok()) {
      ++tally->open_sessions;
      {
        MutexLock lock(&mutex);
        answered = true;
      }
      status = session.channel()->AwaitToken().status();
      // Keeps the token until the chief is gone. Nothing polls, so that a thousand threads do not slow the chief.
      if (status.ok()) {
        MutexLock lock(&mutex);
        while (answered) changed.Wait(&mutex);
        status = absl::UnavailableError("the chief is gone");
      }
      --tally->open_sessions;
    } else {
      tally->Count(std::string(status.message()));
    }
    session.Close();
    const absl::Status retry = session.AwaitRetry(status);
    CHECK(retry.ok()) << retry;
  }
}

class ManyWorkers {
 public:
  ManyWorkers(std::string chief, int workers, std::string directory)
      : chief_binary_(std::move(chief)), workers_(workers), directory_(std::move(directory)) {}

  absl::Status Start() {
    RETURN_IF_ERROR(WriteFileAtomically(FileSystem::Real(), JoinPath(directory_, "run.textproto"), kRun));
    RETURN_IF_ERROR(StartChief("127.0.0.1:0"));
    const std::string address = absl::StrCat("127.0.0.1:", port_);
    began_ = absl::Now();
    for (int i = 0; i < workers_; ++i) std::thread(Work, address, i, &tally_).detach();
    return absl::OkStatus();
  }
  absl::Status KillChief(absl::Duration absence) {
    chief_->Kill();
    while (tally_.open_sessions > 0) absl::SleepFor(absl::Milliseconds(1));
    absl::SleepFor(absence);
    tally_.Take();
    tally_.open_session_calls = 0;
    RETURN_IF_ERROR(StartChief(absl::StrCat("127.0.0.1:", port_)));
    began_ = absl::Now();
    return absl::OkStatus();
  }
  // Waits until the chief has a stream from every worker. Returns true if no limit was exceeded.
  bool AwaitAll(const std::string& what) {
    const auto client = NewGrpcChiefClient(absl::StrCat("127.0.0.1:", port_));
    int joined = 0;
    while (joined < workers_ && absl::Now() - began_ < kGivenUp) {
      absl::SleepFor(absl::Milliseconds(50));
      const auto status = client->GetStatus();
      joined = status.ok() ? status->worker_size() : 0;
    }
    const absl::Duration took = absl::Now() - began_;
    const double calls = static_cast<double>(tally_.open_session_calls.load()) / workers_;
    std::cout << absl::StrFormat("%s: %d of %d workers in %.2f s, %.2f OpenSession calls each\n", what, joined,
                                 workers_, absl::ToDoubleSeconds(took), calls);
    int evicted = 0;
    for (const auto& [message, times] : tally_.Take()) {
      std::cout << "  " << times << " x " << message << "\n";
      // The chief is only ever killed here, never shut down, so a unary call that was canceled must have been evicted.
      const bool is_evicted = absl::StrContains(message, "too many") ||
                              absl::StrContains(message, "the chief shut down during the call") ||
                              message == "CANCELLED";
      if (is_evicted) evicted += times;
    }
    return joined == workers_ && took <= kLimit && calls <= kMostCalls && evicted == 0;
  }
  // Returns true if the status is small enough.
  bool MeasureStatus() {
    constexpr int kCalls = 101;
    const auto client = NewGrpcChiefClient(absl::StrCat("127.0.0.1:", port_));
    std::vector<absl::Duration> times;
    size_t bytes = 0;
    for (int i = 0; i < kCalls; ++i) {
      const absl::Time began = absl::Now();
      const auto status = client->GetStatus();
      times.push_back(absl::Now() - began);
      if (status.ok()) bytes = std::max(bytes, status->ByteSizeLong());
    }
    std::sort(times.begin(), times.end());
    std::cout << absl::StrFormat("GetStatus: %d bytes, median %.2f ms, at most %.2f ms\n", bytes,
                                 absl::ToDoubleMilliseconds(times[kCalls / 2]),
                                 absl::ToDoubleMilliseconds(times.back()));
    return bytes > 0 && bytes <= kMostStatusBytes * static_cast<size_t>(workers_);
  }

 private:
  absl::Status StartChief(const std::string& listen) {
    const std::string port_file = JoinPath(directory_, "port");
    unlink(port_file.c_str());
    ASSIGN_OR_RETURN(
        chief_, benchmark::Child::Start(
                    {chief_binary_, JoinPath(directory_, "run.textproto"), absl::StrCat("--listen=", listen),
                     absl::StrCat("--port_file=", port_file), absl::StrCat("--logdir=", JoinPath(directory_, "run"))},
                    JoinPath(directory_, "chief.log")));
    const absl::Time began = absl::Now();
    while (absl::Now() - began < kGivenUp) {
      const auto port = ReadFile(FileSystem::Real(), port_file);
      if (port.ok() && !port->empty()) {
        port_ = std::stoi(*port);
        return absl::OkStatus();
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    return absl::DeadlineExceededError("the chief does not listen");
  }

  const std::string chief_binary_;
  const int workers_;
  const std::string directory_;
  Tally tally_;
  std::unique_ptr<benchmark::Child> chief_;
  int port_ = 0;
  absl::Time began_;
};

int Main(int argc, char** argv) {
  InitializeProcess(argv[0]);
  std::string chief, directory;
  int workers = 1000, kills = 1;
  absl::Duration absence = absl::Seconds(2);
  CommandLine command_line("many_workers", "Joins a thousand workers of one process to a chief that is killed.", "");
  command_line.AddFlag("chief", "FILE", "the chief's program", &chief);
  command_line.AddFlag("directory", "DIR", "an empty folder for the run", &directory);
  command_line.AddFlag("workers", "N", "how many", &workers);
  command_line.AddFlag("kills", "N", "how often the chief is killed", &kills);
  command_line.AddFlag("absence", "TIME", "how long it is away then", &absence);
  if (const auto code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr)) return *code;
  FLAGS_minloglevel = google::GLOG_ERROR;  // a thousand workers log a lot
  // Never destroyed, because the workers' threads use both objects until the process ends.
  auto* const many = new ManyWorkers(chief, workers, directory);
  absl::Status status = many->Start();
  if (status.ok()) many->AwaitAll("the first time");
  bool good = status.ok() && many->MeasureStatus();
  for (int i = 0; status.ok() && i < kills; ++i) {
    status = many->KillChief(absence);
    if (status.ok()) good = many->AwaitAll("after a kill") && good;
  }
  if (!status.ok()) std::cerr << status << "\n";
  std::cout.flush();
  std::_Exit(status.ok() && good ? 0 : 1);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }

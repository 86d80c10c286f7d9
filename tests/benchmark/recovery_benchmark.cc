#include "lockstep/tests/benchmark/recovery_benchmark.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "google/protobuf/text_format.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/client/chief_client.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/report/quantity.h"
#include "lockstep/common/transport/grpc_chief_client.h"
#include "lockstep/tests/benchmark/exchange/child.h"
#include "lockstep/tests/benchmark/exchange/training_exchange.h"
#include "lockstep/tests/benchmark/spread.h"

namespace lockstep {
namespace benchmark {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr int kImages = 2048;
constexpr int kWorkers = 2;
// Number of steps before the disturbance. During these steps, connections are established and memory is touched for the
// first time.
constexpr int64_t kStepsBefore = 50;
// The interval at which the chief is polled.
constexpr auto kPeriod = std::chrono::milliseconds(2);
// The bars (maximum times without a step). For a worker, the time is in addition to the lease; for the chief, it is in
// addition to the time that a chief takes to start and restore a checkpoint.
constexpr double kWorkerBarSeconds = 0.5;
constexpr double kChiefBarSeconds = 2;
// For a standby, the time is in addition to the lease if the chief was halted.
constexpr double kStandbyBarSeconds = 1;

// An observer that polls a chief's status to see when steps are committed. Not thread-safe.
class CommitWatch {
 public:
  explicit CommitWatch(std::string address) : address_(std::move(address)) {}

  // Blocks until the run has committed `steps` steps and, if `checkpoint`, written a checkpoint.
  absl::Status AwaitSteps(int64_t steps, bool checkpoint) {
    return LookUntil([=] { return step_ >= steps && (!checkpoint || has_checkpoint_); });
  }

  // Blocks until the chief answers and then commits a step.
  absl::Status AwaitCommit() {
    RETURN_IF_ERROR(LookUntil([this] { return client_ != nullptr; }));
    return LookUntil([this, first = step_] { return step_ > first; });
  }

  // Watches from now until the first commit after `end`, and returns the longest time without a commit in seconds.
  absl::StatusOr<double> LongestGapUntil(absl::Time end) {
    longest_ = absl::ZeroDuration();
    RETURN_IF_ERROR(LookUntil([this, end] { return last_commit_ >= end; }));
    return absl::ToDoubleSeconds(longest_);
  }

 private:
  absl::Status LookUntil(const std::function<bool()>& enough) {
    const absl::Time deadline = absl::Now() + kLimit;
    while (absl::Now() < deadline) {
      Look();
      if (enough()) return absl::OkStatus();
      std::this_thread::sleep_for(kPeriod);
    }
    return absl::DeadlineExceededError(absl::StrCat("the run of the chief at ", address_, " makes no steps"));
  }

  void Look() {
    if (client_ == nullptr) client_ = NewGrpcChiefClient(address_, ClientOptions());
    const auto status = client_->GetStatus();
    if (!status.ok()) {
      client_ = nullptr;  // a new client connects immediately; this one would wait
      return;
    }
    has_checkpoint_ = !status->checkpoint().empty();
    const int64_t step = status->global_step();
    const bool committed = step > step_;
    step_ = step;  // lower than before if the chief was restarted
    if (!committed) return;
    const absl::Time now = absl::Now();
    longest_ = std::max(longest_, now - last_commit_);
    last_commit_ = now;
  }

  static GrpcClientOptions ClientOptions() {
    GrpcClientOptions options;
    options.call_timeout = absl::Seconds(1);
    return options;
  }

  const std::string address_;
  std::unique_ptr<ChiefClient> client_;
  int64_t step_ = 0;
  bool has_checkpoint_ = false;
  absl::Time last_commit_ = absl::Now();
  absl::Duration longest_;
};

// A process that executes `lockstep run`. Not thread-safe.
class SupervisedRun {
 public:
  // Starts the run in an empty logdir, and blocks until the chief listens.
  static absl::StatusOr<std::unique_ptr<SupervisedRun>> Start(const RecoveryBenchmarkOptions& options,
                                                              const config::v1::RunSpec& config,
                                                              const std::string& logdir) {
    std::unique_ptr<SupervisedRun> run(new SupervisedRun(options.programs.chief));
    std::string text;
    google::protobuf::TextFormat::PrintToString(config, &text);
    const std::string file = JoinPath(options.directory, "supervised.textproto");
    RETURN_IF_ERROR(WriteFileAtomically(FileSystem::Real(), file, text));
    ASSIGN_OR_RETURN(run->supervisor_,
                     Child::Start({options.supervisor, "run", file, absl::StrCat("--workers=", kWorkers),
                                   absl::StrCat("--logdir=", logdir), "--listen=127.0.0.1:0"},
                                  JoinPath(options.directory, "supervisor.log")));
    RETURN_IF_ERROR(run->supervisor_->ReadLine(kLimit).status());
    const absl::Time deadline = absl::Now() + kLimit;
    while (absl::Now() < deadline) {
      const auto port = ReadFile(FileSystem::Real(), JoinPath(logdir, "log/chief.port"));
      int number = 0;
      if (port.ok() && absl::SimpleAtoi(*port, &number)) {
        run->address_ = absl::StrCat("127.0.0.1:", number);
        return run;
      }
      std::this_thread::sleep_for(kPeriod);
    }
    return absl::DeadlineExceededError(absl::StrCat(options.supervisor, " starts no chief"));
  }

  // Stops the processes, which would survive if the supervisor were merely killed.
  ~SupervisedRun() {
    if (supervisor_ == nullptr) return;
    kill(supervisor_->pid(), SIGTERM);
    while (supervisor_->ReadLine(kLimit).ok()) {
    }
  }

  const std::string& address() const { return address_; }

  absl::Status KillChief() {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || !IsChief(entry.path())) continue;
      kill(pid, SIGKILL);
      return absl::OkStatus();
    }
    return absl::NotFoundError("the supervisor has no chief");
  }

 private:
  explicit SupervisedRun(std::string chief) : chief_(std::move(chief)) {}

  // Returns true if `process`, a folder in /proc, is a child of the supervisor and runs the chief's program.
  bool IsChief(const std::filesystem::path& process) const {
    std::string command;
    std::getline(std::ifstream(process / "cmdline"), command, '\0');
    if (command != chief_) return false;
    std::ifstream status(process / "status");
    for (std::string line; std::getline(status, line);) {
      const std::vector<std::string> words = absl::StrSplit(line, '\t');
      if (words[0] == "PPid:") return words.back() == absl::StrCat(supervisor_->pid());
    }
    return false;
  }

  const std::string chief_;
  std::unique_ptr<Child> supervisor_;
  std::string address_;
};

config::v1::RunSpec RunOf(const RecoveryBenchmarkOptions& options) {
  TrainingSpec training;
  training.hidden = {512, 512};
  training.images = JoinPath(options.directory, "images");
  training.labels = JoinPath(options.directory, "labels");
  config::v1::RunSpec config = TrainingConfig(training, kWorkers);
  config.mutable_cluster()->set_lease_seconds(absl::ToDoubleSeconds(options.lease));
  return config;
}

// Returns the minimum time to watch after a disturbance. Watching then continues until the next commit.
absl::Duration Watched(const RecoveryBenchmarkOptions& options) { return 2 * options.lease + absl::Seconds(1); }

ClusterProcesses::Options NewCluster(const RecoveryBenchmarkOptions& options) {
  ClusterProcesses::Options cluster;
  cluster.programs = options.programs;
  cluster.directory = options.directory;
  cluster.config = RunOf(options);
  cluster.workers = kWorkers;
  return cluster;
}

// Returns a cluster that saves every second to a logdir, which this function empties.
ClusterProcesses::Options SavingCluster(const RecoveryBenchmarkOptions& options) {
  ClusterProcesses::Options cluster = NewCluster(options);
  cluster.config.mutable_checkpoint()->set_every_seconds(1);
  cluster.config.mutable_checkpoint()->set_keep(1);
  cluster.logdir = JoinPath(options.directory, "logdir");
  std::error_code ignored;
  std::filesystem::remove_all(cluster.logdir, ignored);
  return cluster;
}

// Sends SIGKILL or SIGSTOP to one of two workers.
absl::StatusOr<std::vector<double>> DisturbWorker(const RecoveryBenchmarkOptions& options, int signal) {
  const ClusterProcesses::Options cluster = NewCluster(options);
  ASSIGN_OR_RETURN(const auto processes, ClusterProcesses::Start(cluster));
  RETURN_IF_ERROR(processes->Await([](const v1::RunStatus& status) { return status.worker_size() == kWorkers; }));
  CommitWatch watch(processes->address());
  RETURN_IF_ERROR(watch.AwaitSteps(kStepsBefore, /*checkpoint=*/false));
  kill(processes->worker(1), signal);
  ASSIGN_OR_RETURN(const double gap, watch.LongestGapUntil(absl::Now() + Watched(options)));
  return std::vector<double>{gap};
}

// Kills the chief and returns the longest time without a commit. Also returns how long a chief takes to start and to
// restore the same kind of checkpoint.
absl::StatusOr<std::vector<double>> KillChief(const RecoveryBenchmarkOptions& options) {
  ClusterProcesses::Options cluster = SavingCluster(options);
  cluster.workers = 0;
  double gap = 0;
  {
    ASSIGN_OR_RETURN(const auto run, SupervisedRun::Start(options, cluster.config, cluster.logdir));
    CommitWatch watch(run->address());
    RETURN_IF_ERROR(watch.AwaitSteps(kStepsBefore, /*checkpoint=*/true));
    RETURN_IF_ERROR(run->KillChief());
    ASSIGN_OR_RETURN(gap, watch.LongestGapUntil(absl::Now() + Watched(options)));
  }
  const absl::Time begin = absl::Now();
  ASSIGN_OR_RETURN(const auto restored, ClusterProcesses::Start(cluster));
  return std::vector<double>{gap, absl::ToDoubleSeconds(absl::Now() - begin)};
}

// Sends SIGKILL or SIGSTOP to a chief that has a standby, and returns the time until the standby commits a step.
absl::StatusOr<std::vector<double>> ReplaceChief(const RecoveryBenchmarkOptions& options, int signal) {
  ClusterProcesses::Options cluster = SavingCluster(options);
  cluster.standby = true;
  ASSIGN_OR_RETURN(const auto processes, ClusterProcesses::Start(cluster));
  RETURN_IF_ERROR(CommitWatch(processes->address()).AwaitSteps(kStepsBefore, /*checkpoint=*/true));
  const absl::Time begin = absl::Now();
  kill(processes->chief(), signal);
  RETURN_IF_ERROR(CommitWatch(processes->standby_address()).AwaitCommit());
  return std::vector<double>{absl::ToDoubleSeconds(absl::Now() - begin)};
}

struct Gaps {
  std::vector<double> ours, theirs;
};

void AddRow(const std::string& what, const std::string& against, const Gaps& gaps, double bar, Report* report) {
  Row* const row = report->add_row();
  row->set_group("recovery");
  row->set_what(what);
  row->set_unit("s without a step");
  row->set_against(against);
  Compare(gaps.ours, gaps.theirs, row);
  row->set_at_most(bar);
}

}  // namespace

absl::Status MeasureRecovery(const RecoveryBenchmarkOptions& options, Report* report) {
  if (options.supervisor.empty()) return absl::InvalidArgumentError("LOCKSTEP_BINARY does not name the program");
  WriteImages(options.directory, kImages);
  const double lease = absl::ToDoubleSeconds(options.lease);
  Gaps killed, halted, chief, replaced_killed, replaced_halted;
  for (int i = 0; i < options.repetitions; ++i) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      ASSIGN_OR_RETURN(const auto numbers,
                       MeasureApart([&options, signal] { return DisturbWorker(options, signal); }, 2 * kLimit));
      Gaps& gaps = signal == SIGKILL ? killed : halted;
      gaps.ours.push_back(numbers[0]);
      gaps.theirs.push_back(lease);
      ASSIGN_OR_RETURN(const auto takeover,
                       MeasureApart([&options, signal] { return ReplaceChief(options, signal); }, 2 * kLimit));
      Gaps& replaced = signal == SIGKILL ? replaced_killed : replaced_halted;
      replaced.ours.push_back(takeover[0]);
      replaced.theirs.push_back(kStandbyBarSeconds + (signal == SIGKILL ? 0 : lease));
    }
    ASSIGN_OR_RETURN(const auto numbers, MeasureApart([&options] { return KillChief(options); }, 2 * kLimit));
    chief.ours.push_back(numbers[0]);
    chief.theirs.push_back(kChiefBarSeconds + numbers[1]);
  }
  const std::string one_of = absl::StrCat("one of ", CountText(kWorkers, "worker"));
  AddRow(absl::StrCat(one_of, " killed"), "the lease", killed, 1 + kWorkerBarSeconds / lease, report);
  AddRow(absl::StrCat(one_of, " halted"), "the lease", halted, 1 + kWorkerBarSeconds / lease, report);
  AddRow("chief killed, and started again", absl::StrCat(kChiefBarSeconds, " s and a chief's start that restores"),
         chief, 1, report);
  AddRow("takeover: chief killed, with a standby", absl::StrCat(kStandbyBarSeconds, " s"), replaced_killed, 1, report);
  AddRow("takeover: chief halted, with a standby", absl::StrCat("the lease and ", kStandbyBarSeconds, " s"),
         replaced_halted, 1, report);
  return absl::OkStatus();
}

}  // namespace benchmark
}  // namespace lockstep

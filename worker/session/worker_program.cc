#include "lockstep/worker/session/worker_program.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/json_log.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/cluster_role.h"
#include "lockstep/common/cluster/master_address.h"
#include "lockstep/common/cluster/tf_config.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/report/json_text.h"
#include "lockstep/common/transport/connection/credentials_flags.h"
#include "lockstep/common/transport/grpc_connector.h"
#include "lockstep/worker/session/training_worker.h"
#include "lockstep/worker/session/workload/configured_workload.h"

namespace lockstep {
namespace {

struct Flags {
  // chief_address is --master.
  TrainingWorker::Options worker;
  WorkloadOptions workload;
  CredentialsFlags credentials;
  absl::optional<double> chief_wait_seconds;
  std::string log_format = "text";
};

void Declare(Flags* flags, CommandLine* command_line) {
  command_line->AddFlag(
      "master", "grpc://HOST:PORT",
      "the chief; also unix:/path, several separated by commas, which are tried in their order, or "
      "file:PATH, a file that has the address (lockstep chief --address_file). When absent, the chief "
      "of the cluster in TF_CONFIG",
      &flags->worker.chief_address);
  flags->credentials.Declare(command_line);
  command_line->AddFlag(
      "name", "NAME",
      "shown in status and logs; worker-PID@HOST when absent, in a container with six random digits for PID",
      &flags->worker.name);
  command_line->AddFlag("compute_threads", "N", "threads that compute; 0: as configured. Does not change the result.",
                        &flags->workload.compute_threads);
  command_line->AddFlag(
      "index_dir", "DIR",
      "keeps indexes of CSV, libsvm and TFRecord files and checksums of large IDX files; none: made at "
      "each start",
      &flags->workload.index_directory);
  command_line->AddFlag("chief_wait_seconds", "S", "how long to look for an absent chief; as configured when absent",
                        &flags->chief_wait_seconds);
  command_line->AddFlag("startup_delay_steps", "N",
                        "compute nothing before the global step is N; as configured when absent",
                        &flags->worker.startup_delay_steps);
  command_line->AddFlag("log_format", "FORMAT", kLogFormatHelp, &flags->log_format);
}

// If --master is not set, takes it from TF_CONFIG, and --name, too, unless that is set.
absl::Status ReadTfConfig(Flags* flags) {
  if (!flags->worker.chief_address.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TfConfig config, TfConfigOfEnvironment());
  if (config.cluster.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ClusterRole task, ResolveRole(config));
  if (task.role != Role::kWorker) {
    return absl::InvalidArgumentError(absl::StrCat("TF_CONFIG makes this task, ", task.job, " ", task.index,
                                                   " of the cluster, no worker",
                                                   task.role == Role::kChief ? " but the chief: lockstep chief" : ""));
  }
  flags->worker.chief_address = MasterOf(task.chief_address);
  if (flags->worker.name.empty()) flags->worker.name = absl::StrCat(task.job, "-", task.index);
  return absl::OkStatus();
}

TrainingWorker::Options WorkerOptions(const Flags& flags) {
  TrainingWorker::Options options = flags.worker;
  if (options.name.empty()) options.name = ProcessName("worker");
  options.clock = Clock::Real();
  if (flags.chief_wait_seconds) options.max_wait = absl::Seconds(*flags.chief_wait_seconds);
  options.make_workload = [workload = flags.workload](const config::v1::RunSpec& config) {
    return LoadWorkload(config, workload);
  };
  return options;
}

// A worker and its client, kept alive together because a stop may still call them while the main thread releases them.
struct RunningWorker {
  RunningWorker(const TrainingWorker::Options& options, std::unique_ptr<ChiefClient> chief)
      : client(std::move(chief)), worker(options, client.get()) {}
  const std::unique_ptr<ChiefClient> client;
  TrainingWorker worker;
};

// Holder of the worker that a signal stops. Thread-safe.
class StoppableWorker {
 public:
  void Set(std::shared_ptr<RunningWorker> worker) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool stop = false;
    {
      MutexLock lock(&mutex_);
      worker_ = worker;
      stop = stop_;
    }
    if (stop) worker->worker.RequestStop();
  }
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<RunningWorker> worker;
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      worker = worker_;
    }
    if (worker != nullptr) worker->worker.RequestStop();
  }
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<RunningWorker> worker;
    MutexLock lock(&mutex_);
    worker = std::move(worker_);
  }

 private:
  Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<RunningWorker> worker_ ABSL_GUARDED_BY(mutex_);
};

// Runs a worker until it ends or a signal ends it.
absl::Status RunUntilStopped(const MasterAddress& master, const GrpcClientOptions& client_options,
                             const TrainingWorker::Options& options) {
  StoppableWorker running;
  // The watch must be set up before any other thread starts, including gRPC's threads, because a signal would end the
  // process if it were delivered to a thread that does not block it.
  TerminationWatch::Options signals;
  signals.on_stop = [&] {
    LOG(INFO) << options.name << ": terminating; Ctrl-C once more ends at once";
    running.RequestStop();
  };
  signals.on_save = [&] { LOG(INFO) << options.name << ": the chief saves, a worker has nothing to save; continues"; };
  signals.limit = [] { return kEndingLimit; };
  TerminationWatch watch(std::move(signals));
  GrpcConnector connector(FileSystem::Real(), client_options);
  ASSIGN_OR_RETURN(std::unique_ptr<ChiefClient> client, connector.Connect(master));
  const auto worker = std::make_shared<RunningWorker>(options, std::move(client));
  running.Set(worker);
  const absl::Status status = worker->worker.Run();
  running.Clear();
  if (status.ok())
    LOG(INFO) << options.name << ": the run is over; computed " << worker->worker.slots_computed() << " slots";
  return status;
}

// Reports how the worker ended and returns its exit code.
int Report(const std::string& name, const absl::Status& status) {
  if (absl::IsCancelled(status)) {
    LOG(INFO) << name << ": stopped";
  } else if (!status.ok()) {
    LOG(ERROR) << name << ": " << status.message();
  }
  return ExitCodeOf(status);
}

}  // namespace

int WorkerMain(int argc, char** argv) {
  InitializeProcess(argv[0]);
  Flags flags;
  CommandLine command_line(
      "lockstep worker", "Computes gradients for a chief, from which it gets the configuration.",
      "An empty --master= is a chief in the same process: lockstep worker --master= CONFIG is lockstep local CONFIG.\n"
      "Exit codes: 0 the run is over; 1 it failed; 2 wrong arguments; 138 the chief stayed away, starting again may "
      "help; 143 terminated. SIGTERM, SIGINT, SIGHUP and SIGXCPU let the worker end a contribution that it has begun "
      "to send; "
      "repeated, they change nothing, except that a SIGINT (Ctrl-C) a second or more after the first ends it at once. "
      "SIGUSR1 and SIGUSR2, which make a chief save, change nothing here.");
  Declare(&flags, &command_line);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  const absl::Status log_format = SetLogFormat(flags.log_format, "worker");
  if (!log_format.ok()) {
    std::cerr << "lockstep worker: " << log_format.message() << "\n";
    return kExitBadConfiguration;
  }
  const absl::Status tf_config = ReadTfConfig(&flags);
  if (!tf_config.ok()) {
    std::cerr << "lockstep worker: " << tf_config.message() << "\n";
    return kExitBadConfiguration;
  }
  if (flags.worker.chief_address.empty()) {
    std::cerr << "lockstep worker: --master is missing or empty; it takes the chief's address, such as "
                 "grpc://127.0.0.1:2222. lockstep local CONFIG runs all in one process\n";
    return kExitBadConfiguration;
  }
  const absl::StatusOr<MasterAddress> master = ParseMasterAddress(flags.worker.chief_address);
  if (!master.ok()) {
    std::cerr << "lockstep worker: " << master.status().message() << "\n";
    return kExitBadConfiguration;
  }
  GrpcClientOptions client;
  const absl::StatusOr<Credentials> credentials = flags.credentials.Load(FileSystem::Real());
  if (!credentials.ok()) {
    std::cerr << "lockstep worker: " << credentials.status().message() << "\n";
    return kExitBadConfiguration;
  }
  client.credentials = *credentials;
  const TrainingWorker::Options options = WorkerOptions(flags);
  SetLogField("worker", JsonString(options.name));
  return Report(options.name, RunUntilStopped(*master, client, options));
}

}  // namespace lockstep

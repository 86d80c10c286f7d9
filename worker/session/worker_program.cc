#include "worker/session/worker_program.h"

#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/mutex.h"
#include "common/base/process.h"
#include "common/transport/grpc_chief_client.h"
#include "glog/logging.h"
#include "worker/session/configured_task.h"
#include "worker/session/training_worker.h"

namespace lockstep {
namespace {

struct Flags {
  std::string master;
  std::string name;
  std::string index_directory;
  int compute_threads = 0;
  absl::optional<double> chief_wait_seconds;
  absl::optional<int64_t> startup_delay_steps;
};

void Declare(Flags* flags, CommandLine* command_line) {
  command_line->AddFlag("master", "grpc://HOST:PORT", "the chief; also unix:/path", &flags->master);
  command_line->AddFlag("name", "NAME", "shown in status and logs; worker-PID@HOST when absent", &flags->name);
  command_line->AddFlag("compute_threads", "N", "threads that compute; 0: as configured. Does not change the result.",
                        &flags->compute_threads);
  command_line->AddFlag(
      "index_dir", "DIR",
      "keeps indexes of CSV, libsvm and TFRecord files and checksums of large IDX files; none: made at "
      "each start",
      &flags->index_directory);
  command_line->AddFlag("chief_wait_seconds", "S", "how long to look for an absent chief; as configured when absent",
                        &flags->chief_wait_seconds);
  command_line->AddFlag("startup_delay_steps", "N",
                        "compute nothing before the global step is N; as configured when absent",
                        &flags->startup_delay_steps);
}

TrainingWorker::Options WorkerOptions(const Flags& flags) {
  TrainingWorker::Options options;
  options.name = flags.name.empty() ? ProcessName("worker") : flags.name;
  options.clock = Clock::Real();
  options.chief_address = flags.master;
  if (flags.chief_wait_seconds) options.chief_wait = absl::Seconds(*flags.chief_wait_seconds);
  options.startup_delay_steps = flags.startup_delay_steps;
  options.make_task = [flags](const RunConfig& config) {
    ConfiguredTaskOptions task;
    task.index_directory = flags.index_directory;
    task.compute_threads = flags.compute_threads;
    return MakeConfiguredTask(config, task);
  };
  return options;
}

// Runs a worker until it ends or a signal ends it.
absl::Status RunUntilStopped(const Flags& flags, const TrainingWorker::Options& options) {
  Mutex mutex;
  TrainingWorker* running = nullptr;
  bool stop = false;
  // Before any other thread, of gRPC's too: one that does not block a signal would let it end the process.
  TerminationWatch watch([&] {
    MutexLock lock(&mutex);
    stop = true;
    LOG(INFO) << options.name << ": terminating; Ctrl-C once more ends at once";
    if (running != nullptr) running->RequestStop();
  });
  const auto client = NewGrpcChiefClient(std::string(absl::StripPrefix(flags.master, "grpc://")));
  TrainingWorker worker(options, client.get());
  {
    MutexLock lock(&mutex);
    running = &worker;
    if (stop) worker.RequestStop();
  }
  const absl::Status status = worker.Run();
  if (status.ok()) LOG(INFO) << options.name << ": the run is over; computed " << worker.slots_computed() << " slots";
  MutexLock lock(&mutex);
  running = nullptr;
  return status;
}

}  // namespace

int WorkerMain(int argc, char** argv) {
  InitializeProcess(argv[0]);
  Flags flags;
  CommandLine command_line(
      "lockstep worker", "Computes gradients for a chief, from which it gets the configuration.",
      "With --master= (empty) everything runs in one process; see lockstep local --help.\n"
      "Exit codes: 0 the run is over; 1 it failed; 2 wrong arguments; 138 the chief stayed away, starting again may "
      "help; 143 terminated. SIGTERM, SIGINT and SIGHUP let the worker end a contribution that it has begun to send; "
      "repeated they change nothing, but for a SIGINT (Ctrl-C) a second or more after the first: it ends at once.");
  Declare(&flags, &command_line);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  if (flags.master.empty()) {
    std::cerr << "lockstep worker: --master is missing; it takes the chief's address, such as grpc://127.0.0.1:2222\n";
    return kExitBadConfiguration;
  }

  const TrainingWorker::Options options = WorkerOptions(flags);
  const absl::Status status = RunUntilStopped(flags, options);
  if (!status.ok()) LOG(ERROR) << options.name << ": " << status.message();
  return ExitCodeOf(status);
}

}  // namespace lockstep

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
#include "common/base/process.h"
#include "common/transport/grpc_chief_client.h"
#include "glog/logging.h"
#include "worker/session/configured_task.h"
#include "worker/session/training_worker.h"

namespace lockstep {

int WorkerMain(int argc, char** argv) {
  InitializeProcess(argv[0]);
  std::string master;
  std::string name;
  std::string index_directory;
  int compute_threads = 0;
  absl::optional<double> chief_wait_seconds;
  absl::optional<int64_t> startup_delay_steps;
  CommandLine command_line(
      "lockstep worker", "Computes gradients for a chief, from which it gets the configuration.",
      "With --master= (empty) everything runs in one process; see lockstep local --help.\n"
      "Exit codes: 0 the run is over; 1 it failed; 2 wrong arguments; 138 the chief stayed away, starting again may "
      "help; 143 terminated. SIGTERM or SIGINT lets the worker end a contribution that it has begun to send; a "
      "second one ends it at once.");
  command_line.AddFlag("master", "grpc://HOST:PORT", "the chief; also unix:/path", &master);
  command_line.AddFlag("name", "NAME", "shown in status and logs; worker-PID@HOST when absent", &name);
  command_line.AddFlag("compute_threads", "N", "threads that compute; 0: as configured. Does not change the result.",
                       &compute_threads);
  command_line.AddFlag("index_dir", "DIR",
                       "keeps the indexes of CSV, libsvm and TFRecord files; none: built at each start",
                       &index_directory);
  command_line.AddFlag("chief_wait_seconds", "S", "how long to look for an absent chief; as configured when absent",
                       &chief_wait_seconds);
  command_line.AddFlag("startup_delay_steps", "N",
                       "compute nothing before the global step is N; as configured when absent", &startup_delay_steps);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  if (master.empty()) {
    std::cerr << "lockstep worker: --master is missing; it takes the chief's address, such as grpc://127.0.0.1:2222\n";
    return kExitBadConfiguration;
  }

  const std::unique_ptr<ChiefClient> client = NewGrpcChiefClient(std::string(absl::StripPrefix(master, "grpc://")));
  TrainingWorker::Options options;
  options.name = name.empty() ? ProcessName("worker") : name;
  options.clock = Clock::Real();
  options.chief_address = master;
  if (chief_wait_seconds) options.chief_wait = absl::Seconds(*chief_wait_seconds);
  options.startup_delay_steps = startup_delay_steps;
  options.make_task = [compute_threads, index_directory](const RunConfig& config) {
    ConfiguredTaskOptions task;
    task.index_directory = index_directory;
    task.compute_threads = compute_threads;
    return MakeConfiguredTask(config, task);
  };
  TrainingWorker worker(options, client.get());
  // Its thread is the first to be made, so that all others block the signals.
  TerminationWatch watch([&worker, &options] {
    LOG(INFO) << options.name << ": terminating; once more ends at once";
    worker.RequestStop();
  });
  const absl::Status status = worker.Run();
  if (status.ok()) {
    LOG(INFO) << options.name << ": the run is over; computed " << worker.slots_computed() << " slots";
  } else {
    LOG(ERROR) << options.name << ": " << status.message();
  }
  return ExitCodeOf(status);
}

}  // namespace lockstep

// The chief of a run; `lockstep chief --help` says what it does.
#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"
#include "common/config/run_config.h"
#include "common/io/file_system.h"
#include "glog/logging.h"
#include "server/chief/chief.h"
#include "server/chief/run_directory.h"
#include "server/rpc/chief_server.h"

namespace lockstep {
namespace {

struct Flags {
  std::string config;
  std::string logdir;
  std::string listen = "127.0.0.1:2222";
  std::string port_file;
  absl::optional<int64_t> steps;
  absl::optional<uint64_t> seed;
  std::vector<std::string> overrides;
  int step_threads = 2;
  double lock_wait_seconds = 0;
};

void Declare(Flags* flags, CommandLine* command_line) {
  command_line->AddArgument("CONFIG", "the run's configuration, a textproto", &flags->config);
  command_line->AddFlag("logdir", "DIR", "checkpoints and events go here; none: nothing is kept", &flags->logdir);
  command_line->AddFlag("listen", "HOST:PORT,...",
                        "where workers connect; port 0 takes any; also unix:/path and unix-abstract:name",
                        &flags->listen);
  command_line->AddFlag("port_file", "FILE", "the port that was taken is written to this file", &flags->port_file);
  command_line->AddFlag("steps", "N", "the global step at which the run is finished", &flags->steps);
  command_line->AddFlag("seed", "N", "of initial values, shuffling and dropout", &flags->seed);
  command_line->AddFlag("set", "PATH=VALUE", "sets any field of the configuration", &flags->overrides);
  command_line->AddFlag("step_threads", "N", "threads that sum gradients and apply updates", &flags->step_threads);
  command_line->AddFlag("lock_wait_seconds", "S",
                        "how long to wait for a chief of the same logdir that is still ending, as it saves",
                        &flags->lock_wait_seconds);
}

absl::StatusOr<RunConfig> LoadConfig(const Flags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (flags.steps) overrides.push_back(absl::StrCat("training.steps=", *flags.steps));
  if (flags.seed) overrides.push_back(absl::StrCat("training.seed=", *flags.seed));
  // Workers read the data, from directories of their own: every path they are told is absolute.
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof(directory)) == nullptr)
    return absl::FailedPreconditionError("the working directory is gone");
  ASSIGN_OR_RETURN(RunConfig config, LoadRunConfig(FileSystem::Real(), flags.config, overrides));
  ResolvePaths(directory, &config);
  return config;
}

absl::Status Serve(const Flags& flags, const RunConfig& config, Chief* chief) {
  ChiefServer::Options options;
  options.address = std::string(absl::StripPrefix(flags.listen, "grpc://"));
  options.step_threads = flags.step_threads;
  ASSIGN_OR_RETURN(const auto server, ChiefServer::Start(options, chief));
  LOG(INFO) << "chief: epoch " << chief->epoch() << ", listening on " << server->address() << ", "
            << config.training().replicas_to_aggregate() << " slots a step, " << config.training().steps() << " steps"
            << (flags.logdir.empty() ? "" : absl::StrCat(", logdir ", flags.logdir));
  if (!flags.port_file.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(FileSystem::Real(), flags.port_file, absl::StrCat(server->port(), "\n")));
  }
  const absl::Status status = chief->Wait();
  if (absl::IsDeadlineExceeded(status)) {
    // Whatever was destroyed now would wait for the disk, too.
    LOG(ERROR) << "chief: " << status.message();
    std::_Exit(kExitFailed);
  }
  return status;
}

// Waits for a chief before this one that still saves, as long as the flags say or until `*stop`. One that stays is for
// Chief::Create to name.
void AwaitPredecessor(const Flags& flags, Mutex* mutex, const bool* stop) {
  constexpr absl::Duration kPeriod = absl::Milliseconds(50);
  Clock* const clock = Clock::Real();
  if (flags.logdir.empty() || flags.lock_wait_seconds <= 0) return;
  if (!RunDirectory::IsHeld(FileSystem::Real(), flags.logdir)) return;
  LOG(INFO) << "chief: another chief is still ending in " << flags.logdir << "; waiting up to "
            << flags.lock_wait_seconds << " s for it";
  const absl::Time deadline = clock->Now() + absl::Seconds(flags.lock_wait_seconds);
  while (clock->Now() < deadline && RunDirectory::IsHeld(FileSystem::Real(), flags.logdir)) {
    MutexLock lock(mutex);
    if (*stop) return;
    CondVar nobody;
    clock->WaitUntil(&nobody, mutex, clock->Now() + kPeriod);
  }
}

int Main(int argc, char** argv) {
  InitializeProcess(argv[0]);
  Flags flags;
  CommandLine command_line(
      "lockstep chief", "Owns a run: the variables, the global step, the tokens, checkpoints and events.",
      "SIGTERM, SIGINT and SIGHUP: saves the last step, within checkpoint.stop_seconds, and ends. Repeated they change "
      "nothing, but for a SIGINT (Ctrl-C) a second or more after the first: it ends at once.\n"
      "Exit codes: 0 the last step is saved; 1 the run failed (a loss or a gradient that is not finite), or the last "
      "step, also that of a stop, could not be saved, or a second Ctrl-C came before it was; 2 wrong arguments or "
      "configuration; 138 starting again may help; "
      "143 stopped, and the last step is saved.");
  Declare(&flags, &command_line);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  const auto config = LoadConfig(flags);
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return kExitBadConfiguration;
  }

  std::unique_ptr<Chief> chief;
  Mutex mutex;
  bool stop = false;
  // Before any other thread: they must all block the signals.
  TerminationWatch watch(
      [&] {
        MutexLock lock(&mutex);
        stop = true;
        LOG(INFO) << "chief: terminating; Ctrl-C once more ends at once";
        if (chief != nullptr) chief->RequestStop();
      },
      kExitFailed, absl::Seconds(config->checkpoint().stop_seconds()) + kEndingLimit);
  AwaitPredecessor(flags, &mutex, &stop);
  {
    MutexLock lock(&mutex);
    if (stop) return kExitTerminated;
  }
  Chief::Options options;
  options.fs = FileSystem::Real();
  options.clock = Clock::Real();
  options.logdir = flags.logdir;
  options.config = *config;
  options.share_memory = config->cluster().shared_memory();
  auto created = Chief::Create(std::move(options));
  if (!created.ok()) {
    std::cerr << "chief: " << created.status().message() << "\n";
    // An I/O error may be gone the next time.
    if (absl::IsInternal(created.status())) return kExitRetryable;
    return absl::IsFailedPrecondition(created.status()) || absl::IsInvalidArgument(created.status())
               ? kExitBadConfiguration
               : kExitFailed;
  }
  {
    MutexLock lock(&mutex);
    chief = *std::move(created);
    if (stop) chief->RequestStop();
  }
  const absl::Status status = Serve(flags, *config, chief.get());
  if (status.ok()) {
    LOG(INFO) << "chief: finished at step " << chief->GetStatus().global_step();
  } else if (absl::IsCancelled(status)) {
    LOG(INFO) << "chief: " << status.message();
  } else {
    LOG(ERROR) << "chief: " << status.message();
  }
  // All that can be saved is.
  watch.set_second_exit_code(ExitCodeOf(status));
  std::unique_ptr<Chief> ended;
  {
    MutexLock lock(&mutex);
    ended = std::move(chief);
  }
  ended.reset();  // waits for files: without the lock, or a second Ctrl-C would wait, too
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }

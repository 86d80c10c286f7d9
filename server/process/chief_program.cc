#include "lockstep/server/process/chief_program.h"

#include <errno.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/mutex.h"
#include "lockstep/common/base/process/json_log.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/base/threads/executor.h"
#include "lockstep/common/cluster/cluster_role.h"
#include "lockstep/common/cluster/tf_config.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/common/report/json_text.h"
#include "lockstep/server/process/chief_host.h"

namespace lockstep {
namespace {

constexpr char kDefaultListen[] = "127.0.0.1:2222";

struct Flags {
  ConfigFlags config;
  ChiefHost::Options host;
  ServeOptions serve;
  absl::optional<std::string> listen;
  double lock_wait_seconds = 0;
  // As long as a Program answers.
  double linger_seconds = 2;
  bool stop_with_stdin = false;
  std::string log_format = "text";
};

void Declare(Flags* flags, CommandLine* command_line) {
  flags->config.Declare(command_line);
  command_line->AddFlag("logdir", "DIR", "folder for checkpoints and events; nothing is saved without it",
                        &flags->host.chief.logdir);
  command_line->AddFlag(
      "listen", "HOST:PORT,...",
      "addresses to listen on; port 0 takes any free port; also unix:/path and unix-abstract:name. Default: the port "
      "of this task in TF_CONFIG's cluster, or 127.0.0.1:2222",
      &flags->listen);
  flags->serve.security.Declare(command_line);
  command_line->AddFlag("port_file", "FILE", "write the port that the chief listens on to this file",
                        &flags->host.port_file);
  command_line->AddFlag(
      "address_file", "FILE",
      "write this chief's address to this file, for workers with --master=file:FILE, which follow a chief that "
      "restarts elsewhere",
      &flags->host.address_file.path);
  command_line->AddFlag("advertise", "HOST",
                        "the host in that address, or HOST:PORT, or one of the unix sockets in --listen; default: the "
                        "host of --listen, or this machine's name if that is "
                        "0.0.0.0",
                        &flags->host.address_file.advertise);
  command_line->AddFlag("step_threads", "N",
                        "threads that sum gradients and apply updates, plus one for each worker that shares memory",
                        &flags->serve.step_threads);
  command_line->AddFlag("lock_wait_seconds", "S",
                        "how long to wait for another chief of the same logdir that is still saving and ending",
                        &flags->lock_wait_seconds);
  command_line->AddFlag("linger_seconds", "S",
                        "how long to answer after the end of the run, so that workers that start around then learn of "
                        "it, if the configuration has no cluster.linger_seconds",
                        &flags->linger_seconds);
  command_line->AddFlag(
      "standby", "",
      "wait while another chief of the same logdir runs; take over when it has ended, or shows no sign of life for "
      "cluster.lease_seconds. Workers need the address of both: --master=grpc://A:2222,grpc://B:2222",
      &flags->host.standby);
  command_line->AddFlag(
      "new_run", "",
      "begin a new run in an empty logdir, and refuse workers of another run, which would otherwise end this chief",
      &flags->host.chief.new_run);
  command_line->AddFlag(
      "stop_with_stdin", "",
      "stop, as at SIGTERM, when stdin ends: a program that starts a chief with a pipe for it leaves none behind, "
      "however it ends",
      &flags->stop_with_stdin);
}

void DeclareLogFormat(Flags* flags, CommandLine* command_line) {
  command_line->AddFlag("log_format", "FORMAT", kLogFormatHelp, &flags->log_format);
}

std::string ListenAddress(const Flags& flags) {
  return std::string(absl::StripPrefix(flags.listen.value_or(kDefaultListen), "grpc://"));
}

// Takes the options that no flag sets from TF_CONFIG.
absl::Status ReadTfConfig(Flags* flags) {
  if (flags->listen) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TfConfig config, TfConfigOfEnvironment());
  if (flags->host.chief.logdir.empty()) flags->host.chief.logdir = config.model_dir;
  if (config.cluster.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ClusterRole task, ResolveRole(config));
  if (task.role != Role::kChief) {
    return absl::InvalidArgumentError(
        absl::StrCat("TF_CONFIG makes this task, ", task.job, " ", task.index, " of the cluster, not the chief"));
  }
  if (!task.address.empty()) flags->listen = ListenAddressOf(task.address);
  return absl::OkStatus();
}

ChiefHost::Options HostOptions(const Flags& flags, const config::v1::RunSpec& config) {
  ChiefHost::Options options = flags.host;
  options.chief.write_journal = true;
  options.chief.config = config;
  config::v1::ClusterConfig* const cluster = options.chief.config.mutable_cluster();
  if (cluster->linger_seconds() <= 0) cluster->set_linger_seconds(flags.linger_seconds);
  options.chief.change_settings = flags.config.changes_settings();
  options.chief.share_memory = config.cluster().shared_memory();
  options.chief.beat_period = BeatPeriod(config);
  options.predecessor_limit = absl::Seconds(flags.lock_wait_seconds);
  options.listen = ListenAddress(flags);
  options.security = flags.serve.security;
  options.serve = ServeOverGrpc(flags.serve);
  return options;
}

// A watch that stops the chief when stdin ends. Its thread outlives this object, because it blocks in a read of stdin
// that cannot be interrupted.
class InputWatch {
 public:
  // `host` must outlive this.
  explicit InputWatch(ChiefHost* host) : watched_(std::make_shared<Watched>()) {
    watched_->Set(host);
    Executor::Threads()
        ->Start("stdin",
                [watched = watched_] {
                  AwaitEndOfInput();
                  watched->RequestStop();
                })
        ->Detach();
  }
  ~InputWatch() { watched_->Set(nullptr); }

 private:
  class Watched {
   public:
    void Set(ChiefHost* host) ABSL_LOCKS_EXCLUDED(mutex_) {
      MutexLock lock(&mutex_);
      host_ = host;
    }
    void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_) {
      MutexLock lock(&mutex_);
      if (host_ != nullptr) host_->RequestStop();
    }

   private:
    Mutex mutex_;
    ChiefHost* host_ ABSL_GUARDED_BY(mutex_) = nullptr;
  };

  static void AwaitEndOfInput() {
    char ignored[4096];
    ssize_t size;
    do {
      size = read(STDIN_FILENO, ignored, sizeof(ignored));
    } while (size > 0 || (size < 0 && errno == EINTR));
  }

  const std::shared_ptr<Watched> watched_;
};

// Serves the chief until it has ended.
absl::Status Serve(ChiefHost* host) {
  RETURN_IF_ERROR(host->Serve());
  absl::Status status = host->Wait();
  host->MarkEnd(status);
  if (absl::IsDeadlineExceeded(status)) {
    // Exits without destroying anything, because that would also wait for the disk.
    LOG(ERROR) << "chief: " << status.message();
    std::_Exit(host->ExitCode(status));
  }
  return status;
}

int Run(const Flags& flags, const config::v1::RunSpec& config) {
  ChiefHost host(HostOptions(flags, config));
  absl::optional<InputWatch> input;
  if (flags.stop_with_stdin) input.emplace(&host);
  const absl::Status created = host.Create();
  if (!created.ok()) {
    if (!absl::IsCancelled(created)) std::cerr << "chief: " << created.message() << "\n";
    return host.ExitCode(created);
  }
  SetLogField("run", JsonString(host.chief()->GetStatus().run_id()));
  SetLogField("generation", absl::StrCat(host.chief()->generation()));
  const absl::Status status = Serve(&host);
  if (status.ok()) {
    host.LogFinish();
  } else if (absl::IsCancelled(status)) {
    LOG(INFO) << "chief: " << status.message();
  } else {
    LOG(ERROR) << "chief: " << status.message();
  }
  return host.ExitCode(status);
}

}  // namespace

int ChiefMain(int argc, char** argv) {
  InitializeProcess(argv[0]);
  Flags flags;
  CommandLine command_line(
      "lockstep chief", "Owns a run: the variables, the global step, the tokens, checkpoints and events.",
      "SIGUSR1 and SIGUSR2: saves the last step now, and continues.\n"
      "SIGTERM, SIGINT, SIGHUP and SIGXCPU: saves the last step, within checkpoint.stop_seconds, and exits. Repeated "
      "signals have no effect, except that a SIGINT (Ctrl-C) a second or more after the first exits immediately.\n"
      "Exit codes: 0 the last step is saved; 1 the run failed (a loss or a gradient that is not finite), or the last "
      "step, even of a stop, could not be saved, or a second Ctrl-C came before it was; 2 wrong arguments or "
      "configuration, or an empty logdir although workers have served a run; 138 a restart may help; "
      "143 stopped, and the last step is saved.");
  Declare(&flags, &command_line);
  DeclareLogFormat(&flags, &command_line);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
  const absl::Status log_format = SetLogFormat(flags.log_format, "chief");
  if (!log_format.ok()) {
    std::cerr << "chief: " << log_format.message() << "\n";
    return kExitBadConfiguration;
  }
  const absl::Status tf_config = ReadTfConfig(&flags);
  if (!tf_config.ok()) {
    std::cerr << "chief: " << tf_config.message() << "\n";
    return kExitBadConfiguration;
  }
  const auto config = flags.config.Load(FileSystem::Real());
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return kExitBadConfiguration;
  }
  return Run(flags, *config);
}

}  // namespace lockstep

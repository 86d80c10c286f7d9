// The chief of a run; `lockstep chief --help` says what it does.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "glog/logging.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/cluster_role.h"
#include "lockstep/common/cluster/tf_config.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/common/config/run_spec.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/process/address_file.h"
#include "lockstep/server/process/chief_process.h"
#include "lockstep/server/rpc/chief_server.h"

namespace lockstep {
namespace {

constexpr char kDefaultListen[] = "127.0.0.1:2222";

struct Flags {
  ConfigFlags config;
  std::string logdir;
  absl::optional<std::string> listen;
  std::string port_file;
  std::string address_file;
  std::string advertise;
  int step_threads = 2;
  double lock_wait_seconds = 0;
};

void Declare(Flags* flags, CommandLine* command_line) {
  flags->config.Declare(command_line);
  command_line->AddFlag("logdir", "DIR", "checkpoints and events go here; none: nothing is kept", &flags->logdir);
  command_line->AddFlag("listen", "HOST:PORT,...",
                        "where workers connect; port 0 takes any; also unix:/path and unix-abstract:name. When absent, "
                        "the port of this task in TF_CONFIG's cluster, or 127.0.0.1:2222",
                        &flags->listen);
  command_line->AddFlag("port_file", "FILE", "the port that was taken is written to this file", &flags->port_file);
  command_line->AddFlag("address_file", "FILE",
                        "this chief's address is written to this file, for workers with --master=file:FILE; they "
                        "follow a chief that is started again elsewhere",
                        &flags->address_file);
  command_line->AddFlag("advertise", "HOST",
                        "the host in that address, or HOST:PORT; when absent the one of --listen, or this machine's "
                        "name if that is 0.0.0.0",
                        &flags->advertise);
  command_line->AddFlag("step_threads", "N",
                        "threads that sum gradients and apply updates, besides one for each worker that shares memory",
                        &flags->step_threads);
  command_line->AddFlag("lock_wait_seconds", "S",
                        "how long to wait for a chief of the same logdir that is still ending, as it saves",
                        &flags->lock_wait_seconds);
}

std::string ListenAddress(const Flags& flags) {
  return std::string(absl::StripPrefix(flags.listen.value_or(kDefaultListen), "grpc://"));
}

// What TF_CONFIG says, where no flag does.
absl::Status ReadTfConfig(Flags* flags) {
  if (flags->listen) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TfConfig config, TfConfigOfEnvironment());
  if (flags->logdir.empty()) flags->logdir = config.model_dir;
  if (config.cluster.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ClusterRole task, ResolveRole(config));
  if (task.role != Role::kChief) {
    return absl::InvalidArgumentError(
        absl::StrCat("TF_CONFIG makes this task, ", task.job, " ", task.index, " of the cluster, not the chief"));
  }
  if (!task.address.empty()) flags->listen = ListenAddressOf(task.address);
  return absl::OkStatus();
}

ChiefProcess::Options ProcessOptions(const Flags& flags, const config::v1::RunSpec& config, AddressFile* address_file) {
  ChiefProcess::Options options;
  options.chief.fs = FileSystem::Real();
  options.chief.clock = Clock::Real();
  options.chief.logdir = flags.logdir;
  options.chief.config = config;
  options.chief.change_settings = flags.config.changes_settings();
  options.chief.share_memory = config.cluster().shared_memory();
  options.chief.on_accepted = [address_file] { return address_file->Prepare(); };
  options.predecessor_limit = absl::Seconds(flags.lock_wait_seconds);
  return options;
}

absl::StatusOr<AddressFile> NewAddressFile(const Flags& flags) {
  AddressFile::Options options;
  options.fs = FileSystem::Real();
  options.path = flags.address_file;
  options.advertise = flags.advertise;
  options.listen = ListenAddress(flags);
  options.machine = HostName();
  return AddressFile::Create(std::move(options));
}

// A chief that has not come to write its address leaves the file as it was.
void PutBack(AddressFile* address_file) {
  const absl::Status status = address_file->PutBack();
  if (!status.ok()) LOG(ERROR) << "chief: " << status.message();
}

// Serves the chief until it has ended.
absl::Status Serve(const Flags& flags, const config::v1::RunSpec& config, AddressFile* address_file,
                   ChiefProcess* process) {
  ChiefServer::Options options;
  options.address = ListenAddress(flags);
  options.step_threads = flags.step_threads;
  ASSIGN_OR_RETURN(const auto server, ChiefServer::Start(options, process->chief()));
  LOG(INFO) << "chief: generation " << process->chief()->generation() << ", listening on " << server->address() << ", "
            << config.training().replicas_to_aggregate() << " slots a step, " << TrainingLengthText(config.training())
            << (flags.logdir.empty() ? "" : absl::StrCat(", logdir ", flags.logdir));
  RETURN_IF_ERROR(address_file->Write(server->address()));
  if (!flags.port_file.empty()) {
    RETURN_IF_ERROR(WriteFileAtomically(FileSystem::Real(), flags.port_file, absl::StrCat(server->port(), "\n")));
  }
  const absl::Status status = process->Wait();
  const absl::Status marked = address_file->End(status);
  if (!marked.ok()) LOG(ERROR) << "chief: " << marked.message();
  if (absl::IsDeadlineExceeded(status)) {
    // Whatever was destroyed now would wait for the disk, too.
    LOG(ERROR) << "chief: " << status.message();
    std::_Exit(process->ExitCode(status));
  }
  return status;
}

int Run(const Flags& flags, const config::v1::RunSpec& config, AddressFile* address_file) {
  ChiefProcess process(ProcessOptions(flags, config, address_file));
  const absl::Status created = process.Create();
  if (!created.ok()) {
    PutBack(address_file);
    if (!absl::IsCancelled(created)) std::cerr << "chief: " << created.message() << "\n";
    return process.ExitCode(created);
  }
  const absl::Status status = Serve(flags, config, address_file, &process);
  PutBack(address_file);
  if (status.ok()) {
    LOG(INFO) << "chief: finished at step " << process.chief()->GetStatus().global_step();
  } else if (absl::IsCancelled(status)) {
    LOG(INFO) << "chief: " << status.message();
  } else {
    LOG(ERROR) << "chief: " << status.message();
  }
  return process.ExitCode(status);
}

int Main(int argc, char** argv) {
  InitializeProcess(argv[0]);
  Flags flags;
  CommandLine command_line(
      "lockstep chief", "Owns a run: the variables, the global step, the tokens, checkpoints and events.",
      "SIGUSR1 and SIGUSR2: saves the last step now, and continues.\n"
      "SIGTERM, SIGINT, SIGHUP and SIGXCPU: saves the last step, within checkpoint.stop_seconds, and ends. Repeated "
      "they change "
      "nothing, but for a SIGINT (Ctrl-C) a second or more after the first: it ends at once.\n"
      "Exit codes: 0 the last step is saved; 1 the run failed (a loss or a gradient that is not finite), or the last "
      "step, also that of a stop, could not be saved, or a second Ctrl-C came before it was; 2 wrong arguments or "
      "configuration; 138 starting again may help; "
      "143 stopped, and the last step is saved.");
  Declare(&flags, &command_line);
  if (const auto exit_code = command_line.Parse(CommandLine::Words(argc, argv), std::cout, std::cerr))
    return *exit_code;
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
  auto address_file = NewAddressFile(flags);
  if (!address_file.ok()) {
    std::cerr << "chief: " << address_file.status().message() << "\n";
    // An I/O error may be gone the next time.
    return absl::IsInternal(address_file.status()) ? kExitRetryable : kExitBadConfiguration;
  }
  return Run(flags, *config, &*address_file);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::Main(argc, argv); }

#include "lockstep/train/program/program.h"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "glog/logging.h"
#include "lockstep/common/base/catch_exceptions.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/base/status_macros.h"
#include "lockstep/common/cluster/tf_config.h"
#include "lockstep/common/io/file_system.h"
#include "lockstep/server/process/address_file.h"
#include "lockstep/train/evaluation/run_evaluation.h"
#include "lockstep/train/session/end/await_run_end.h"

namespace lockstep::train {
namespace {

constexpr char kDetails[] =
    "Without --listen, --master and a cluster the whole run is in this process. A cluster is told by --worker_hosts "
    "and\n"
    "--ps_hosts, or by TF_CONFIG in the environment, as Kubeflow sets it: chief, master, worker, ps and evaluator.\n"
    "SIGTERM, SIGINT, SIGHUP and SIGXCPU stop it; SIGUSR1 and SIGUSR2 make the chief save now, and it continues.\n"
    "Exit codes: 0 the run is over and its last step is saved; 1 it failed; 2 wrong arguments; 138 starting again may "
    "help; 143 stopped by a signal, and nothing is lost.";

// The maximum time from a signal to the end of the program, including the save, unless a Supervisor or MonitoredSession
// sets it.
constexpr absl::Duration kStopLimit = absl::Seconds(60);
// Long enough for processes that poll four times a second to learn that the run has ended.
constexpr absl::Duration kLinger = absl::Seconds(2);

std::string NameOf(const char* path) {
  const std::string name = path;
  return name.substr(name.find_last_of('/') + 1);
}

}  // namespace

Program::Program(int argc, char** argv, std::string summary)
    : argc_(argc), argv_(argv), command_line_(NameOf(argv[0]), std::move(summary), kDetails) {
  cluster_.Declare(&command_line_);
  command_line_.AddFlag("port_file", "FILE", "chief: the port that was taken is written to this file",
                        &chief_.port_file);
  command_line_.AddFlag("address_file", "FILE",
                        "chief: its address is written to this file, for workers with --master=file:FILE, and when the "
                        "run is over, that",
                        &chief_.address_file);
  command_line_.AddFlag("advertise", "HOST", "chief: the host in that address, or HOST:PORT", &chief_.advertise);
  command_line_.AddFlag("new_run", "",
                        "chief: an empty logdir is meant to be one: a new run begins there, and workers of another run "
                        "are refused",
                        &chief_.new_run);
  command_line_.AddFlag("steps", "N", "chief: the global step at which the run is finished", &steps_);
  command_line_.AddFlag("seed", "N", "chief: seed of initial values, shuffling, dropout and augmentation", &seed_);
}

absl::Status Program::Resolve() {
  if (steps_ && *steps_ <= 0)
    return absl::InvalidArgumentError(absl::StrCat("--steps is ", *steps_, ", must be above 0"));
  ASSIGN_OR_RETURN(TfConfig environment, TfConfigOfEnvironment());
  ASSIGN_OR_RETURN(process_, cluster_.Resolve(std::move(environment)));
  return CheckChiefFlags();
}

absl::Status Program::CheckChiefFlags() const {
  if (!is_chief()) {
    for (const char* flag : {"port_file", "address_file", "advertise", "new_run"}) {
      if (command_line_.IsGiven(flag)) return absl::InvalidArgumentError(absl::StrCat("--", flag, " is for the chief"));
    }
    return absl::OkStatus();
  }
  const std::string file = !chief_.address_file.empty() ? "--address_file" : "--port_file";
  if (process_.listen.empty() && !(chief_.address_file.empty() && chief_.port_file.empty())) {
    return absl::InvalidArgumentError(absl::StrCat(file, " is for workers; say with --listen where they connect"));
  }
  AddressFile::Options address_file;
  address_file.fs = FileSystem::Real();
  address_file.path = chief_.address_file;
  address_file.advertise = chief_.advertise;
  address_file.machine = HostName();
  return AddressFile::Create(std::move(address_file), process_.listen).status();
}

int Program::Run(const std::function<absl::Status()>& body) {
  return RunEveryRole([&] {
    const bool trains = process_.task.role == Role::kChief || process_.task.role == Role::kWorker;
    return trains ? body() : WaitOrEvaluate();
  });
}

absl::Status Program::WaitOrEvaluate() {
  if (process_.task.role == Role::kEvaluator) {
    RunEvaluationOptions options;
    options.logdir = process_.logdir;
    options.stop = &stop_;
    return EvaluateRun(options);
  }
  AwaitRunEndOptions options;
  options.master = process_.master;
  options.tls_dir = cluster_.tls_dir;
  options.logdir = process_.logdir;
  options.stop = &stop_;
  LOG(INFO) << "task " << process_.task.index << " of the job ps holds nothing: it waits for the end of the run at "
            << process_.master;
  return AwaitRunEnd(options);
}

int Program::RunEveryRole(const std::function<absl::Status()>& body) {
  InitializeProcess(argv_[0]);
  if (const auto exit_code = command_line_.Parse(CommandLine::Words(argc_, argv_), std::cout, std::cerr))
    return *exit_code;
  const absl::Status flags = Resolve();
  if (!flags.ok()) {
    std::cerr << NameOf(argv_[0]) << ": " << flags.message() << "\n";
    return kExitBadConfiguration;
  }
  absl::Status status;
  {
    TerminationWatch watch(WatchOptions());
    status = CatchExceptions(body);
    if (IsDiskHang(status)) {
      // Destroying anything now would wait for the disk, too.
      LOG(ERROR) << status.message();
      std::_Exit(kExitFailed);
    }
  }
  if (absl::IsOutOfRange(status)) status = absl::OkStatus();
  if (absl::IsCancelled(status)) {
    LOG(INFO) << status.message();
  } else if (!status.ok()) {
    LOG(ERROR) << status.message();
  }
  return ExitCodeOf(status);
}

TerminationWatch::Options Program::WatchOptions() {
  TerminationWatch::Options options;
  options.on_stop = [this] {
    LOG(INFO) << "terminating; Ctrl-C once more ends at once";
    stop_.Request();
  };
  options.on_save = [this] {
    if (!stop_.RequestSave() && !is_chief())
      LOG(INFO) << "the chief saves, this process has nothing to save; continues";
  };
  options.second_exit_code = [this] { return stop_.loses_nothing() ? kExitTerminated : kExitFailed; };
  options.limit = [this] { return stop_.limit(kStopLimit); };
  return options;
}

SessionOptions Program::Options(TrainOp op) {
  SessionOptions options = chief_;
  if (is_chief()) options.linger = kLinger;
  options.op = std::move(op);
  options.is_chief = is_chief();
  options.master = process_.master;
  options.listen = process_.listen;
  options.tls_dir = cluster_.tls_dir;
  options.insecure = cluster_.insecure;
  options.logdir = process_.logdir;
  if (!is_chief()) options.name = absl::StrCat("worker-", task_index());
  options.stop = &stop_;
  return options;
}

config::v1::RunSpec Program::WithFlags(config::v1::RunSpec spec) const {
  if (steps_) {
    spec.mutable_training()->clear_unbounded();
    spec.mutable_training()->clear_additional_steps();
    spec.mutable_training()->set_steps(*steps_);
  }
  if (seed_) spec.mutable_training()->set_seed(*seed_);
  return spec;
}

}  // namespace lockstep::train

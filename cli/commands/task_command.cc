#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "glog/logging.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/errors.h"
#include "lockstep/cli/commands/task_processes.h"
#include "lockstep/cli/launcher/programs.h"
#include "lockstep/cli/launcher/resolved_task.h"
#include "lockstep/cli/report/run_report.h"
#include "lockstep/common/base/clock.h"
#include "lockstep/common/base/process/process.h"
#include "lockstep/common/config/config_flags.h"
#include "lockstep/common/flags/command_line.h"
#include "lockstep/server/process/serve_security.h"
#include "lockstep/train/session/end/await_run_end.h"
#include "lockstep/train/session/end/stop_signal.h"

namespace lockstep {
namespace {

constexpr char kName[] = "lockstep task";

constexpr char kDetails[] =
    "The same command starts every task of a cluster, such as srun lockstep task CONFIG. COMMAND follows \"--\".\n"
    "Role, addresses and name come from the flags, else from the variables LOCKSTEP_…, else from the launcher that "
    "has\n"
    "started this process: TF_CONFIG, Slurm, Kubernetes (an Indexed Job), torchrun (RANK, MASTER_ADDR, PET_…), Open "
    "MPI.\n"
    "Sources that contradict each other are an error. Task 0 of equal tasks is the chief, and computes too.\n"
    "A chief whose master is file:PATH writes its address to the file. CONFIG is for the chief alone.\n"
    "COMMAND computes, as python train.py does, and finds the chief in LOCKSTEP_MASTER; without it the worker is\n"
    "lockstep worker. Without CONFIG, the chief's COMMAND declares the run.\n"
    "A killed process is started again. Signals: as for lockstep run; a stop ends the processes of this task.\n"
    "Exit codes: 0 the run is over; 1 it failed; 2 wrong arguments, configuration or environment; 138 starting again "
    "may\n"
    "help; 143 stopped.\n"
    "Examples: lockstep task run.textproto --logdir=/shared/run1; lockstep task -- python train.py";

struct TaskFlags {
  ConfigFlags config;
  // The values of the task's flags, by name. The flags are declared only for the help text; ResolveTaskOf reads the
  // arguments and the environment itself.
  std::map<std::string, std::string> resolved;
  Launcher::Options launcher;  // has max_restarts
  ServeSecurity security;
  int compute_threads = 0;
  bool new_run = false;
  bool show = false;
};

void DeclareResolved(TaskFlags* flags, CommandLine* command_line) {
  constexpr struct {
    const char *name, *placeholder, *description;
  } kFlags[] = {
      {"role", "chief|worker|ps|evaluator", "what this task is"},
      {"launcher", "NAME", "whose variables count: tf_config, slurm, kubernetes, torch, mpi or none; all when absent"},
      {"index", "K", "the task's index; task 0 is the chief"},
      {"tasks", "N", "the number of tasks"},
      {"master", "grpc://HOST:PORT", "where the chief is, the same for every task; also file:PATH on a shared disk"},
      {"listen", "HOST:PORT", "chief: where it listens; all interfaces at the port of its address when absent"},
      {"advertise", "HOST", "chief: the host that it writes to the file of --master"},
      {"name", "NAME", "worker: shown in status and logs; must be unique in the run"},
      {"workers", "N", "worker processes of this task; 0 for a chief that only serves"},
      {"logdir", "DIR", "chief: checkpoints and summaries go here; runs/<name of CONFIG> when absent"},
  };
  for (const auto& flag : kFlags) {
    command_line->AddFlag(flag.name, flag.placeholder, flag.description, &flags->resolved[flag.name]);
  }
}

void Declare(TaskFlags* flags, CommandLine* command_line) {
  flags->config.Declare(command_line, CommandLine::kOptional);
  DeclareResolved(flags, command_line);
  command_line->AddFlag("max_restarts", "N", "how often each process is started again when it dies",
                        &flags->launcher.max_restarts);
  flags->security.Declare(command_line);
  command_line->AddFlag("compute_threads", "N", "threads that compute in each worker; 0: as configured",
                        &flags->compute_threads);
  command_line->AddFlag("new_run", "", "chief: an empty logdir is meant to be one, and a new run begins there",
                        &flags->new_run);
  command_line->AddFlag("show", "", "prints what this task is and why, and starts nothing", &flags->show);
}

EnvironmentMap ProcessEnvironment() {
  EnvironmentMap environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

// Returns the flags on the command line that determine the task.
std::map<std::string, std::string> GivenFlags(const TaskFlags& flags, const CommandLine& command_line) {
  std::map<std::string, std::string> given;
  for (const auto& [name, value] : flags.resolved) {
    if (command_line.IsGiven(name)) given[name] = value;
  }
  return given;
}

void Print(const ResolvedTask& task, std::ostream& out) {
  for (const TaskValue& value : task.values) {
    out << absl::StrFormat("lockstep: %-9s  %s  (%s)\n", value.name, value.value, value.source);
  }
  out << std::flush;
}

// Waits for the end of the run. A task with the role ps does nothing else, because the chief holds all variables.
int AwaitEnd(const ResolvedTask& task, const ServeSecurity& security) {
  train::StopSignal stop;
  TerminationWatch::Options signals;
  signals.on_stop = [&stop] { stop.Request(); };
  // Limits the time to exit, because the address file may be on a disk that hangs. Nothing is lost by exiting early.
  signals.limit = [] { return kEndingLimit; };
  TerminationWatch watch(std::move(signals));
  train::AwaitRunEndOptions options;
  options.master = task.master;
  options.tls_dir = security.tls_dir;
  options.stop = &stop;
  LOG(INFO) << "a ps holds nothing: it waits for the end of the run at " << task.master;
  const absl::Status status = train::AwaitRunEnd(options);
  if (!status.ok() && !absl::IsCancelled(status)) LOG(ERROR) << status.message();
  return ExitCodeOf(status);
}

int RunProcesses(FileSystem* fs, const TaskFlags& flags, ResolvedTask task, std::vector<std::string> program,
                 std::ostream& out, std::ostream& err) {
  TaskProcesses processes;
  processes.name = kName;
  processes.program = std::move(program);
  processes.other_tasks = task.role == Role::kChief && !task.master.empty();
  processes.launcher = flags.launcher;
  processes.launcher.workers = task.workers;
  processes.new_run = flags.new_run;
  processes.compute_threads = flags.compute_threads;
  processes.security = flags.security;
  if (task.role == Role::kChief && flags.config.config.empty() && !task.address_file.empty() &&
      !flags.security.tls_dir.empty()) {
    return PrintError(kName,
                      "with --tls_dir and a COMMAND that declares the run, the master cannot be file:PATH: other tasks "
                      "would need the chief's TLS address in it, and this task's workers its socket; give CONFIG, or "
                      "--master=grpc://HOST:PORT",
                      kExitBadConfiguration, err);
  }
  if (task.role == Role::kChief) {
    const absl::Status secure = CheckServeSecurity(fs, flags.security, task.listen, Clock::Real()->WallTime());
    if (!secure.ok()) return PrintError(kName, secure.message(), kExitBadConfiguration, err);
  }
  if (task.role == Role::kChief && !flags.config.config.empty()) {
    const auto config = flags.config.Load(fs);
    if (!config.ok()) return PrintError(kName, config.status().message(), kExitBadConfiguration, err);
    if (task.logdir.empty()) task.logdir = DefaultLogdir(flags.config.config);
    processes.config = flags.config.ToWords();
    processes.stop_limit = absl::Seconds(config->checkpoint().stop_seconds()) + kChiefEnd;
  } else if (task.role == Role::kChief && (processes.program.empty() || task.workers == 0)) {
    return PrintError(
        kName,
        absl::StrCat("this task is the chief (", task.values[0].source,
                     ") and needs CONFIG, the run's configuration, or a COMMAND after \"--\" that declares "
                     "the run"),
        kExitBadConfiguration, err);
  }
  processes.task = std::move(task);
  return RunTaskProcesses(fs, processes, out, err);
}

}  // namespace

int TaskCommand(FileSystem* fs, const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  TaskFlags flags;
  CommandLine command_line(kName, "Runs one task of a cluster, whose role the launcher's variables tell.", kDetails);
  Declare(&flags, &command_line);
  const auto end = std::find(words.begin(), words.end(), "--");
  if (const auto exit_code = command_line.Parse({words.begin(), end}, out, err)) return *exit_code;
  std::vector<std::string> program;
  if (end != words.end()) program.assign(end + 1, words.end());
  if (flags.launcher.max_restarts < 0) {
    return PrintError(kName, absl::StrCat("--max_restarts is ", flags.launcher.max_restarts, ", must be at least 0"),
                      kExitBadConfiguration, err);
  }
  const auto task = ResolveTaskOf(GivenFlags(flags, command_line), ProcessEnvironment());
  if (!task.ok()) return PrintError(kName, task.status().message(), kExitBadConfiguration, err);
  Print(*task, out);
  if (flags.show) return kExitDone;
  switch (task->role) {
    case Role::kParameterServer:
      return AwaitEnd(*task, flags.security);
    case Role::kEvaluator:
      return EvalCommand(fs, {absl::StrCat("--logdir=", task->logdir), "--watch"}, out, err);
    default:
      return RunProcesses(fs, flags, *task, std::move(program), out, err);
  }
}

}  // namespace lockstep
